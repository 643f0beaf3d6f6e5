import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { eider, eiderOk, temporaryFolder } from "./harness.js";

const INPUT = '{"id":1,"v":"a"}\n{"id":2,"v":"b","w":true}\n{"id":3,"x":[1]}\n';
let lake: string;
/** 2-0 and 2-1: in strict mode both rows have a field too many. */
beforeEach(async () => {
  lake = join(temporaryFolder(), "lake");
  await eiderOk(["append", lake, "t", "-"], { stdin: '{"id":0,"v":"z"}\n' });
  const strict = ["--schema-mode", "strict", "--on-reject", "quarantine", "--batch-id", "b"];
  await eiderOk(["append", lake, "t", "-", ...strict], { stdin: INPUT });
});

async function ids(...flags: string[]): Promise<unknown[]> {
  const list = JSON.parse((await eiderOk(["rejects", lake, "t", "--json", ...flags])).stdout) as { id: string }[];
  return list.map(({ id }) => id);
}

async function rows(): Promise<string> {
  return (await eiderOk(["sql", lake, "SELECT id FROM t ORDER BY id", "--format", "csv"])).stdout;
}

describe("eider rejects", () => {
  it("lists ids, states and pages", async () => {
    await eiderOk(["replay", lake, "t", "2-0"]);
    const lines = (await eiderOk(["rejects", lake, "t"])).stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^id +line +state +reason +batch +row$/);
    expect(lines.slice(2)).toEqual([
      expect.stringMatching(/^2-0 +2 +replayed .* b +\{"id":2,"v":"b","w":true\}$/),
      expect.stringMatching(/^2-1 +3 +open .* b +\{"id":3,"x":\[1\]\}$/),
    ]);
    expect(await ids()).toEqual(["2-0", "2-1"]);
    expect(await ids("--open")).toEqual(["2-1"]);
    expect(await ids("--after", "2-0")).toEqual(["2-1"]);
    expect(await ids("--limit", "1")).toEqual(["2-0"]);
    expect(await ids("--batch-id", "other")).toEqual([]);
  });
});

describe("eider replay", () => {
  it("takes rejects by their ids, once", async () => {
    const first = await eiderOk(["replay", lake, "t", "2-1", "2-0"]);
    expect(first.stdout).toMatch(/^committed {2}t: 2 rows, snapshot 3, batch replay:[0-9a-f]{64}\n$/);
    const again = await eiderOk(["replay", lake, "t", "2-0", "2-1"]);
    expect(again.stdout).toBe(first.stdout.replace("committed", "duplicate"));
    expect(await rows()).toBe("id\n0\n1\n2\n3\n");
    expect(await eider(["replay", lake, "t", "2-0"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^reject_replayed: .*\nhint: eider rejects \S+ t --open lists those that can be$/m),
    });
  });

  it("takes all that are open, of a batch or of the table, with what append takes", async () => {
    const strict = await eider(["replay", lake, "t", "--all", "--schema-mode", "strict"]);
    expect(strict).toMatchObject({ code: 1, stderr: expect.stringMatching(/^rejected_rows: .*\n {2}line 1: /) });
    expect(await eiderOk(["replay", lake, "t", "--batch-id", "other"])).toMatchObject({ stdout: "no open rejects\n" });
    const flags = ["--schema-mode", "strict", "--on-reject", "quarantine", "--json"];
    const result = JSON.parse((await eiderOk(["replay", lake, "t", "--batch-id", "b", ...flags])).stdout);
    expect(result).toMatchObject({ status: "committed", rowsAdded: 0, rowsRejected: 2, receipt: { snapshot: 3 } });
    expect(await ids("--open")).toEqual(["3-0", "3-1"]);
    expect((await eiderOk(["replay", lake, "t", "--all"])).stdout).toMatch(/^committed {2}t: 2 rows, snapshot 4, /);
    expect(await rows()).toBe("id\n0\n1\n2\n3\n");
  });

  it("reads CSV by the columns that are named", async () => {
    const stdin = "id,v\n4,d\n5\n";
    await eiderOk(["append", lake, "c", "-", "--format", "csv", "--on-reject", "quarantine"], { stdin });
    await eiderOk(["replay", lake, "c", "--all", "--format", "csv", "--columns", "id"]);
    expect((await eiderOk(["sql", lake, "FROM c ORDER BY id", "--format", "csv"])).stdout).toBe("id,v\n4,d\n5,\n");
  });
});

describe("eider purge-rejects", () => {
  it("takes texts away, by ids, batch or snapshot", async () => {
    expect((await eiderOk(["purge-rejects", lake, "t", "2-1"])).stdout).toBe("1 reject purged\n");
    expect((await eiderOk(["rejects", lake, "t"])).stdout).toMatch(/^2-1 +3 +purged .* b$/m);
    expect(JSON.parse((await eiderOk(["purge-rejects", lake, "t", "--batch-id", "b", "--json"])).stdout)).toEqual({
      purged: 1,
    });
    expect((await eiderOk(["purge-rejects", lake, "t", "--before", "3"])).stdout).toBe("0 rejects purged\n");
    expect((await eiderOk(["purge-rejects", lake, "t", "--before", "2999-01-01"])).stdout).toBe("0 rejects purged\n");
    expect(await eider(["replay", lake, "t", "2-1"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^reject_purged: /),
    });
  });
});

it.each([
  [["replay", "t"]],
  [["replay", "t", "2-0", "--all"]],
  [["replay", "t", "--all", "--batch-id", "b"]],
  [["replay", "t", "--all", "--columns", "a,,b"]],
  [["replay", "t", "--all", "--format", "csv"]],
  [["purge-rejects", "t"]],
  [["purge-rejects", "t", "2-0", "--before", "3"]],
  [["purge-rejects", "t", "--before", "a-tag"]],
])("%j is wrong usage, and changes nothing", async ([command, ...words]) => {
  const outcome = await eider([command!, lake, ...words!]);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(await ids("--open")).toEqual(["2-0", "2-1"]);
});
