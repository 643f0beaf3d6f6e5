/** How the library behaves as part of a process: loading, resources, leaving. */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { temporaryFolder } from "./support/folder.js";
import { root } from "./support/repository.js";

/** Runs a script from the repository, where `eider` resolves to the built package. */
async function node(script: string, type: "commonjs" | "module"): Promise<string> {
  const args = [`--input-type=${type}`, "--eval", script];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: root, timeout: 60_000 });
  expect(stderr).toBe("");
  return stdout;
}

const LOADED = `process.report.getReport().sharedObjects.filter((path) => /duckdb/.test(path)).length`;

it("require() works, and neither loading nor appending loads DuckDB; a query does", async () => {
  const where = JSON.stringify(join(temporaryFolder(), "lake"));
  const script = `
    const { Lake } = require("eider");
    (async () => {
      const lake = await Lake.open(${where});
      await lake.table("t").append([{ a: 1 }], { batchId: "b" });
      await lake.table("t").append(Buffer.from("a\\n2\\n"), { format: "csv" });
      await lake.table("t").receipt("b");
      const before = ${LOADED};
      const rows = await lake.with({ values: "json" }).sql("SELECT sum(a) AS s FROM t");
      console.log(JSON.stringify([before, ${LOADED} > 0, rows]));
      await lake.close();
    })();`;
  expect(JSON.parse(await node(script, "commonjs"))).toEqual([0, true, [{ s: 3 }]]);
});

it("a lake that is not closed keeps no process alive", async () => {
  const where = JSON.stringify(join(temporaryFolder(), "lake"));
  const script = `
    import { Lake } from "eider";
    const lake = await Lake.open(${where});
    await lake.table("t").append([{ a: 1 }]);
    const iterator = lake.sql("SELECT range AS n FROM range(1000000)")[Symbol.asyncIterator]();
    await iterator.next();
    console.log((await lake.sql("SELECT a FROM t").first()).a);`;
  expect(await node(script, "module")).toBe("1n\n");
});

it("an append can be aborted: its reason comes back, and nothing is left", async () => {
  const { Lake } = await import("eider");
  const { events } = await import("./support/events.js");
  await using lake = await Lake.open(temporaryFolder());
  for (const partitionBy of [[], ["type"]]) {
    const abort = new AbortController();
    const reason = new Error("changed my mind");
    const appending = lake.table(`t${partitionBy.length}`, { partitionBy }).append(events(300_000), {
      batchId: "b",
      signal: abort.signal,
      onProgress: ({ rows }) => {
        if (rows > 150_000) abort.abort(reason);
      },
    });
    await expect(appending).rejects.toBe(reason);
  }
  const early = lake.table("t").append([{ a: 1 }], { signal: AbortSignal.abort(new Error("never")) });
  await expect(early).rejects.toThrow("never");
  expect(await lake.tables()).toEqual([]);
  expect((await lake.verify()).findings).toEqual([]);
});

it("close waits for an append in progress", async () => {
  const { Lake } = await import("eider");
  const where = temporaryFolder();
  const lake = await Lake.open(where);
  const appending = lake.table("t").append([{ a: 1 }], { batchId: "b" });
  await lake.close();
  expect(await appending).toMatchObject({ status: "committed" });
  await using again = await Lake.open(where, { mode: "open" });
  expect(await again.sql("SELECT a FROM t")).toEqual([{ a: 1n }]);
});

it("progress comes in phases, and counts", async () => {
  const { Lake } = await import("eider");
  await using lake = await Lake.open("memory:");
  const seen: string[] = [];
  const text = Buffer.from('{"a":1}\n'.repeat(1000));
  await lake.table("t").append(text, {
    onProgress: ({ phase, bytes, totalBytes, rows, elapsedMs }) => {
      expect(totalBytes).toBe(text.length);
      expect(elapsedMs).toBeGreaterThanOrEqual(0);
      seen.push(`${phase} ${bytes} ${rows}`);
    },
  });
  expect(seen.at(-1)).toBe(`commit ${text.length} 1000`);
  expect(new Set(seen.map((line) => line.split(" ")[0]))).toEqual(new Set(["read", "upload", "commit"]));
});
