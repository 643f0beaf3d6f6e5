import { join } from "node:path";
import { Lake } from "eider";
import { beforeAll, expect, it } from "vitest";
import { eider, eiderOk, temporaryFolder } from "./harness.js";

const lake = join(temporaryFolder(), "lake");

beforeAll(async () => {
  await using made = await Lake.open(lake);
  await made.table("t").append([{ id: 1 }, { id: 2 }]);
});

const text = async (...args: string[]): Promise<string> => (await eiderOk(args)).stdout;

it("makes views, lists, replaces and drops them", async () => {
  expect(await text("view", lake, "v", "SELECT max(id) AS id FROM t")).toBe("v is made in snapshot 2\n");
  expect(await text("sql", lake, "FROM v", "--format", "csv")).toBe("id\n2\n");
  expect((await eider(["view", lake, "v", "SELECT 1 AS id"])).stderr).toMatch(/^view_exists: /);
  expect(JSON.parse(await text("view", lake, "v", "SELECT 1 AS id", "--replace", "--json"))).toEqual({
    name: "v",
    sql: "SELECT 1 AS id",
    createdIn: 3,
  });
  expect(await text("view", lake)).toMatch(/^snapshot +view +sql\n─.*\n +3 +v +SELECT 1 AS id\n$/);
  expect(JSON.parse(await text("view", lake, "--at", "2", "--json"))).toMatchObject([{ createdIn: 2 }]);
  expect(await text("snapshots", lake)).toContain("view v");
  expect(await text("view", lake, "v", "--drop")).toBe("v is dropped\n");
  expect((await eider(["view", lake, "v", "--drop"])).stderr).toMatch(/^view_not_found: /);
});

it("shows where a text is wrong, and what is missing", async () => {
  const { code, stderr } = await eider(["view", lake, "w", "SELECT x FROM t"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("1 | SELECT x FROM t\n           ^")]);
  for (const args of [["w"], ["--drop"], ["w", "SELECT 1", "--drop"], ["w", "SELECT 1", "--at", "1"]]) {
    expect((await eider(["view", lake, ...args])).code).toBe(2);
  }
});
