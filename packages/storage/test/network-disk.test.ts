import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FileStore, type StoreWarning } from "../src/index.js";
import { networkKind } from "../src/network-disk.js";

// By hand from linux/magic.h and statfs(2).
test.each([
  [0x6969, "NFS"],
  [0xff534d42, "SMB (CIFS)"],
  // As a signed number, which is what 32-bit systems tell.
  [-11317950, "SMB (CIFS)"],
  [0xfe534d42, "SMB2"],
  [0xef53, undefined],
  [0x58465342, undefined],
  [0x9123683e, undefined],
  [0x01021994, undefined],
  [0x794c7630, undefined],
] as const)("type %i of Linux is %s", (type, kind) => {
  expect(networkKind("/srv", type, "linux")).toBe(kind);
  expect(networkKind("/srv", type, "darwin")).toBeUndefined();
});

test("on Windows a share is told by its path", () => {
  expect(networkKind("\\\\server\\share", 0, "win32")).toBe("a network share");
  expect(networkKind("C:\\lake", 0x6969, "win32")).toBeUndefined();
});

test("a local disk is no reason for a warning", async () => {
  const folder = await mkdtemp(join(tmpdir(), "eider-network-"));
  const warnings: StoreWarning[] = [];
  await using store = new FileStore(folder, { onWarning: (warning) => warnings.push(warning) });
  await store.put("a", new Uint8Array(1));
  await store.head("a");
  expect(warnings).toEqual([]);
  await rm(folder, { recursive: true });
});
