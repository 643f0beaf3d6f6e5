/** Ways in which a lake was once broken; each failed before its fix. */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Lake } from "eider";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./support/folder.js";

describe("a query engine that cannot open", () => {
  it("closes with the lake, and opens once what stood in the way is gone", async () => {
    const folder = temporaryFolder();
    const cacheDir = join(folder, "cache");
    await writeFile(cacheDir, "in the way");
    const options = { cacheDir: join(cacheDir, "inner") };
    const first = await Lake.open(join(folder, "lake"), options);
    await first.table("t").append([{ a: 1 }]);
    await expect(first.sql("SELECT a FROM t")).rejects.toMatchObject({ code: "temp_folder" });
    await first.close();

    await using second = await Lake.open(join(folder, "lake"), options);
    await expect(second.sql("SELECT a FROM t")).rejects.toMatchObject({ code: "temp_folder" });
    await rm(cacheDir);
    await mkdir(cacheDir);
    expect(await second.sql("SELECT a FROM t")).toEqual([{ a: 1n }]);
  });
});
