/** Many processes that write to one local lake at once: the lock of the catalog is what they meet at. */

import { join } from "node:path";
import Database from "better-sqlite3";
import { Lake } from "eider";
import { describe, expect, it } from "vitest";
import { runChild } from "./support/child.js";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

const PROCESSES = 8;
const APPENDS = 200;

interface Answer {
  readonly status: string;
  readonly batchId: string;
  readonly snapshot: number;
  readonly waitMs: number;
}

it("eight processes append 200 batches each: all commit once, and none hears of the lock", async () => {
  const where = temporaryFolder();
  const first = await Lake.open(where);
  await first.table("t", { schema: { writer: "int64", i: "int64" } }).create();
  await first.close();
  const at = Date.now() + 3000;
  const children = await Promise.all(
    Array.from({ length: PROCESSES }, (_, writer) =>
      runChild("append-waits", { lake: where, writer, count: APPENDS, at }),
    ),
  );
  for (const child of children) expect(child).toMatchObject({ code: 0, stderr: "" });
  const answers = children.flatMap((child) => child.lines as Answer[]);
  console.log(describeWaits(answers.map(({ waitMs }) => waitMs)));

  const total = PROCESSES * APPENDS;
  expect(answers).toHaveLength(total);
  expect(answers.filter(({ status }) => status !== "committed")).toEqual([]);
  // Each append is a commit of its own: numbers are dense, and nobody was told another's.
  expect(answers.map(({ snapshot }) => snapshot).sort((a, b) => a - b)).toEqual(
    Array.from({ length: total }, (_, i) => i + 2), // the table is snapshot 1
  );
  for (const { lines } of children) {
    const snapshots = (lines as Answer[]).map(({ snapshot }) => snapshot);
    expect(snapshots).toEqual(snapshots.toSorted((a, b) => a - b));
  }

  await using lake = await Lake.open(where, { mode: "open" });
  expect(await lake.sql("SELECT count(*) AS n, count(DISTINCT (writer, i)) AS d, sum(i) AS s FROM t")).toEqual([
    { n: 1600n, d: 1600n, s: 159_200n }, // 8 × (0 + … + 199)
  ]);
  expect(await lake.verify()).toMatchObject({ ok: true, findings: [] });
});

/** For whoever reads: a time decides nothing here. */
function describeWaits(waits: readonly number[]): string {
  const sorted = waits.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))]!;
  const [median, p99, max] = [at(0.5), at(0.99), at(1)];
  const figures = `median ${median.toFixed(1)}, p99 ${p99.toFixed(1)}, longest ${max.toFixed(1)} ms`;
  return `waits of ${sorted.length} appends: ${figures}; longest/median ${(max / median).toFixed(1)}`;
}

/** Where each row goes: into its entry, or into a file. */
const PLACES = [
  ["in their entries", {}, 0],
  ["in files", FILES, 200],
] as const;

describe.each(PLACES)(
  "two processes append 100 rows each, %s, past a third that holds a read (D40)",
  (_, options, files) => {
    it("all commit once, and the reader sees what it saw", async () => {
      const where = temporaryFolder();
      await using lake = await Lake.open(where, options);
      await lake.table("t", { schema: { writer: "int64", i: "int64" } }).create();
      const reader = new Database(join(where, "_eider", "catalog.sqlite"), { readonly: true });
      reader.exec("BEGIN");
      const head = reader.prepare("SELECT max(n) AS n FROM entries");
      expect(head.get()).toEqual({ n: 1 });

      const at = Date.now() + 1500;
      const argument = { lake: where, count: 100, at, options };
      const children = Promise.all([0, 1].map((writer) => runChild("append-waits", { ...argument, writer })));
      // Two seconds of their work, and for rows in entries a fold of what is there meanwhile.
      await new Promise((resolve) => setTimeout(resolve, at + 2000 - Date.now()));
      await lake.maintain({ fold: "all" });
      expect(head.get()).toEqual({ n: 1 });
      reader.exec("COMMIT");
      reader.close();

      const ended = await children;
      for (const child of ended) expect(child).toMatchObject({ code: 0, stderr: "" });
      const answers = ended.flatMap(({ lines }) => lines as Answer[]);
      expect(answers.filter(({ status }) => status === "committed")).toHaveLength(200);
      expect(new Set(answers.map(({ snapshot }) => snapshot)).size).toBe(200);
      const all = [{ n: 200n, d: 200n }];
      const count = "SELECT count(*) AS n, count(DISTINCT (writer, i)) AS d FROM t";
      expect(await lake.sql(count)).toEqual(all);
      await lake.maintain({ fold: "all" });
      expect(await lake.sql(count)).toEqual(all);
      if (files > 0) expect(await lake.table("t").files()).toHaveLength(files);
    });
  },
);
