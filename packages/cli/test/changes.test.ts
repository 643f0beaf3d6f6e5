import { join } from "node:path";
import { Lake } from "eider";
import { beforeAll, describe, expect, it } from "vitest";
import { eider, eiderOk, temporaryFolder } from "./harness.js";

const lake = join(temporaryFolder(), "lake");

/** Snapshots: 1 and 2 append to `t`, 3 drops `gone`, made by 2. */
beforeAll(async () => {
  await using made = await Lake.open(lake);
  await made.table("t").append([{ id: 1 }, { id: 2 }], { batchId: "first" });
  await made.transaction(
    async (tx) => {
      await tx.table("t").append([{ id: 3 }], { batchId: "a\nb" });
      await tx.table("gone").append([{ id: 1 }], { batchId: "x" });
    },
    { meta: { by: "me" } },
  );
  await made.table("gone").drop();
});

const text = async (...args: string[]): Promise<string> => (await eiderOk(args)).stdout;

describe("changes", () => {
  it("lists batches in order, and goes on behind a position", async () => {
    const lines = (await text("changes", lake, "t")).trimEnd().split("\n");
    expect(lines[0]).toMatch(/^1 +\d{4}-\S+Z +2 first$/);
    expect(lines[1]).toMatch(/^2 +\d{4}-\S+Z +1 a\\nb$/);
    expect(lines).toHaveLength(2);
    expect((await text("changes", lake, "t", "--after", "1")).split("\n")).toHaveLength(2);
    expect(await text("changes", lake, "t", "--after", "2")).toBe("");
  });

  it("--json has a line for each", async () => {
    const lines = (await text("changes", lake, "t", "--json")).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { kind: "append", position: "1", snapshot: 1, batchId: "first", receipt: { rows: 2 }, meta: {} },
      { kind: "append", position: "2", snapshot: 2, batchId: "a\nb", meta: { by: "me" } },
    ]);
  });

  it("--follow waits, until it is interrupted", async () => {
    const { code, stdout, stderr } = await eider(["changes", lake, "t", "--follow", "--poll-ms", "5"], {
      interruptAfterMs: 1000,
    });
    expect([code, stderr]).toEqual([130, "interrupted\n"]);
    expect(stdout.split("\n")).toHaveLength(3);
  });

  it("says what is wrong with a position", async () => {
    const { code, stderr } = await eider(["changes", lake, "t", "--after", "x"]);
    expect([code, stderr.split(":")[0]]).toEqual([1, "bad_position"]);
  });
});

describe("tag and rollback", () => {
  it("name snapshots, read them, go back to them, and forget the name", async () => {
    expect(await text("tag", lake, "v1", "--at", "1")).toBe("v1 is snapshot 1\n");
    expect(JSON.parse(await text("tag", lake, "--json"))).toEqual([{ name: "v1", snapshot: 1 }]);
    expect(await text("sql", lake, "SELECT count(*) AS n FROM t", "--at", "v1", "--format", "csv")).toBe("n\n2\n");
    expect(JSON.parse(await text("rollback", lake, "t", "--to", "v1", "--json"))).toEqual({ snapshot: 5 });
    expect(await text("sql", lake, "SELECT count(*) AS n FROM t", "--format", "csv")).toBe("n\n2\n");
    expect(await text("snapshots", lake, "--after", "3")).toMatch(/tag v1\n.*rollback t to 1\n/);
    expect((await text("changes", lake, "t")).split("\n")[2]).toMatch(/^5 +back to snapshot 1$/);
    expect(await text("rollback", lake, "--to", "3")).toBe("snapshot 6\n");
    expect(await text("sql", lake, "SELECT count(*) AS n FROM t", "--format", "csv")).toBe("n\n3\n");
    expect(await text("tag", lake, "v1", "--delete")).toBe("v1 is forgotten\n");
    const { code, stderr } = await eider(["sql", lake, "FROM t", "--at", "v1"]);
    expect([code, stderr]).toEqual([
      1,
      `tag_not_found: there is no tag "v1"\nhint: eider tag ${lake} lists the tags\n`,
    ]);
  });
});
