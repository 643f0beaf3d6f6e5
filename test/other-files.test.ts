/** Parquet, CSV and JSON files of the user's in the same statement as tables of the lake. */

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Lake } from "eider";
import { beforeAll, describe, expect, test } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

const folder = temporaryFolder();
const [data, secret, root] = ["data", "data-secret", "lake"].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];

beforeAll(async () => {
  for (const path of [data, secret, join(data, "day=1")]) mkdirSync(path);
  writeFileSync(join(data, "people.csv"), "id,name\n1,Ada\n2,it's\n");
  writeFileSync(join(data, "day=1", "more.ndjson"), '{"id":3}\n');
  writeFileSync(join(secret, "words.csv"), "word\nswordfish\n");
  symlinkSync(join(secret, "words.csv"), join(data, "link.csv"));
  await using lake = await Lake.open(root, FILES);
  for (const id of [1, 2, 3]) await lake.table("orders").append([{ id }]);
  await lake.sql(`COPY (SELECT 1::BIGINT AS id, 2.5::DECIMAL(4,1) AS price) TO '${join(data, "prices.parquet")}'`);
});

test("are joined with tables, whose files are still chosen", async () => {
  await using lake = await Lake.open(root);
  const joined = lake.sql(
    `SELECT name, price FROM orders JOIN read_csv('${data}/people.csv') USING (id) JOIN read_parquet($1) USING (id) WHERE orders.id = 1`,
    [`${data}/prices.parquet`],
  );
  expect(await joined).toEqual([{ name: "Ada", price: "2.5" }]);
  const chosen = lake.sql(`SELECT price FROM orders o JOIN '${data}/prices.parquet' p ON p.id = o.id WHERE o.id = 1`);
  expect(await chosen).toEqual([{ price: "2.5" }]);
  expect(chosen.stats).toMatchObject({ filesConsidered: 3, filesRead: 1 });
  await expect(lake.sql`FROM 'nope.csv'`).rejects.toMatchObject({ code: "file_not_found" });
});

test("that come later are found by the same statement", async () => {
  await using lake = await Lake.open(root);
  const put = async (day: number, id: number): Promise<void> => {
    mkdirSync(join(data, `when=${day}`));
    await lake.sql(`COPY (SELECT ${id} AS id) TO '${data}/when=${day}/a.parquet'`);
  };
  const later = lake.sql(
    `SELECT o.id FROM orders o JOIN read_parquet('${data}/when=*/*.parquet', hive_partitioning = true) p ON p.id = o.id WHERE p.when = 2`,
  );
  await put(1, 1);
  expect(await later).toEqual([]);
  await put(2, 3);
  expect(await later).toEqual([{ id: 3n }]);
});

describe("with sqlAccess: { folders }", () => {
  const access = { sqlAccess: { folders: [data] } };

  test("those below are read, beside the lake's own", async () => {
    await using lake = await Lake.open(root, access);
    expect(await lake.sql(`SELECT count(*) AS n FROM orders JOIN '${data}/people.csv' USING (id)`)).toEqual([
      { n: 2n },
    ]);
    expect(await lake.sql(`SELECT id FROM read_json('${data}/*/*.ndjson')`)).toEqual([{ id: 3n }]);
    expect(await lake.sql(`SELECT price FROM '${data}/prices.parquet'`)).toEqual([{ price: "2.5" }]);
  });

  test.each([
    ["its siblings", `FROM '${secret}/words.csv'`],
    ["what .. leads to", `FROM '${data}/../data-secret/words.csv'`],
    ["the system's files", "FROM read_text('/etc/hostname')"],
    ["lists of files", `FROM glob('${folder}/*')`],
    ["URLs", "FROM read_parquet('https://example.com/x.parquet')"],
  ])("%s are refused, with what to do", async (_, sql) => {
    await using lake = await Lake.open(root, access);
    await expect(lake.sql(sql)).rejects.toMatchObject({
      name: "QueryError",
      code: "file_refused",
      message: expect.stringContaining("sqlAccess: { folders:"),
    });
  });

  test("nothing is written, and no setting changes", async () => {
    await using lake = await Lake.open(root, access);
    await expect(lake.sql(`COPY (SELECT 1) TO '${data}/out.csv'`)).rejects.toMatchObject({ code: "read_only_sql" });
    await expect(lake.sql("SET enable_external_access = true")).rejects.toMatchObject({ code: "read_only_sql" });
  });
});

test("without an option of the kind the lake is not opened", async () => {
  for (const sqlAccess of ["none", {}, { folders: "/data" }, { folders: [], more: 1 }]) {
    await expect(Lake.open(root, { sqlAccess } as never)).rejects.toMatchObject({ code: "bad_option" });
  }
});
