/** Hot batches have no file; `verify` decodes what the catalog holds of them. */

import { openSqlite } from "@eider/catalog";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import { Lake } from "../src/lake.js";
import { catalogPath } from "../src/local/catalog-path.js";

it("finds the hot batches that cannot be read, and those that lack rows", async () => {
  const folder = temporaryFolder();
  {
    await using lake = await Lake.open(folder);
    const table = lake.table("t");
    for (const id of [1, 2, 3]) await table.append([{ id }, { id }], { batchId: `b${id}` });
    expect(await lake.verify()).toEqual({ ok: true, files: 0, bytes: 0, hotBatches: 3, findings: [] });
    expect(await table.describe()).toMatchObject({ rows: 6, files: 0, bytes: 0, hotBatches: 3 });
  }
  const driver = openSqlite(catalogPath(folder), { readonly: false, create: false, blockMs: 5000, copy: false });
  driver.run("UPDATE hot_batches SET data = substr(data, 1, length(data) - 8) WHERE batch = 'b1'");
  driver.run("UPDATE hot_batches SET rows = 3 WHERE batch = 'b3'");
  driver.close();

  await using lake = await Lake.open(folder);
  expect(await lake.verify()).toMatchObject({
    ok: false,
    hotBatches: 3,
    findings: [
      { kind: "batch", key: "t/b1", message: "the hot batch cannot be read" },
      { kind: "batch", key: "t/b3", message: "the hot batch has 2 rows, committed were 3" },
    ],
  });
});
