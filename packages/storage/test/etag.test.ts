import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { FileStore } from "../src/index.js";

test("the etag changes with each put even if the clock stands still", async () => {
  const root = await mkdtemp(join(tmpdir(), "eider-etag-"));
  const noon = Date.UTC(2031, 1, 3, 12);
  const clock = vi.spyOn(performance, "now").mockReturnValue(noon - performance.timeOrigin);
  try {
    await using store = new FileStore(root, { durable: false });
    const etags = new Set<string>();
    for (let i = 0; i < 1000; i++) {
      const info = await store.put("object", new Uint8Array([i >> 8, i & 0xff]));
      etags.add(info.etag.split("-").slice(0, 2).join("-"));
      expect(Math.floor(info.modifiedAt / 1000) * 1000).toBe(noon);
    }
    // By size and time alone: which inode comes again is up to the file system.
    expect(etags.size).toBe(1000);
  } finally {
    clock.mockRestore();
    await rm(root, { recursive: true });
  }
});
