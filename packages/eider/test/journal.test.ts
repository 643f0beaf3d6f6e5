import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { SqliteCatalog } from "@eider/catalog";
import { FileStore } from "@eider/storage";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import { Journal } from "../src/local/journal.js";
import { indexCopies } from "../src/shared/index-copies.js";

it("after something was to be forgotten there is one checkpoint, and nothing older", async () => {
  const root = temporaryFolder();
  mkdirSync(join(root, "_eider"));
  const path = join(root, "_eider", "catalog.sqlite");
  await using catalog = await SqliteCatalog.open({ path });
  await using store = new FileStore(root);
  const always = { isDue: ({ entries }: { entries: number }) => entries >= 2 };
  const copies = indexCopies({ path, lake: catalog.lakeId });
  const journal = new Journal({ store, catalog, copies, logger: {}, limits: always });
  const kept = (folder: string): string[] => readdirSync(join(root, "_eider", folder)).map((name) => name.slice(0, 20));
  const tag = async (name: string, op = "tag"): Promise<void> => {
    await catalog.commit({ operations: [{ op: "tag", name, snapshot: 1 }] });
    journal.note({ operations: [{ op } as never] });
    await journal.close();
  };
  await catalog.commit({
    operations: [
      {
        op: "schema",
        table: "t1",
        version: 1,
        schema: { fields: [] },
        lastFieldId: 0,
        create: { name: "t", folder: "t", partitionBy: [], orderBy: [] },
      },
    ],
  });
  for (const name of ["a", "b", "c", "d", "e"]) await tag(name);
  // Entry 1 and 2 at once, then one a time: checkpoints at 2, 4, 6; the pages of 5 and 6 come after the one at 4.
  expect([kept("checkpoint"), kept("journal")].map((names) => names.map(Number).sort())).toEqual([
    [4, 6],
    [5, 6],
  ]);
  await tag("f", "purge");
  expect([kept("checkpoint"), readdirSync(join(root, "_eider"))]).toEqual([
    [String(7).padStart(20, "0")],
    expect.not.arrayContaining(["journal"]),
  ]);
});
