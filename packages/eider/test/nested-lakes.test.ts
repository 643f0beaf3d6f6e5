/** Lakes and copies in the folder of another lake, which may look after itself but not after them. */

import { join } from "node:path";
import { expect, it } from "vitest";
import { Lake } from "../src/lake.js";
import { temporaryFolder } from "./support/folder.js";

it.each(["backup", "t/backup", "t/data/backup", "data", "x/data", "data/data"])(
  "a copy at %s below a lake is no orphan of it",
  async (place) => {
    const where = temporaryFolder();
    await using lake = await Lake.open(where, { inlineBytes: 0 });
    const table = lake.table("t", { partitionBy: ["p"] });
    await table.append([{ id: 1, p: "data" }]);
    await lake.copyTo(join(where, place));
    await table.append([{ id: 2, p: "data" }]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await lake.maintain({ graceMs: 0 })).toMatchObject({ deleted: [] });
    await using copy = await Lake.open(join(where, place), { mode: "read" });
    expect(await copy.verify()).toMatchObject({ ok: true, files: 1 });
  },
);
