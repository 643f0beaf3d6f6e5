import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { bundleSources } from "./bundle.js";
import { buildScopeEntry } from "./scope-entry.js";
import { Scratch } from "./support.js";

/** A child process runs our sources, bundled, so that nothing needs to be built before. */
const scratch = new Scratch();
let bundle: string;

beforeAll(async () => {
  bundle = await bundleSources("index.ts", "query.mjs");
  return () => scratch[Symbol.dispose]();
});

const LAKE = `
  const catalog = { head: async () => ({ snapshot: 0, time: 0, floor: 0 }), tables: async () => [] };
  const engine = await QueryEngine.open({ catalog, store: {}, tempDir: ${JSON.stringify(scratch.path)} });
`;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function child(script: string, env: Record<string, string> = {}): Promise<string> {
  const code = `const { QueryEngine } = await import(${JSON.stringify(bundle)});\n${script}`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], {
    env: { ...process.env, ...env },
    timeout: 30_000,
  });
  return stdout;
}

describe("a process", () => {
  test("in any time zone gets the same answers", async () => {
    const script = `${LAKE}
      const text = "SELECT TIMESTAMPTZ '2031-02-03 04:05:06' AS a, $1 AS b, $1::DATE AS c, $1::TIMESTAMP AS d, " +
        "strftime($1, '%c') AS e, date_trunc('day', $1) AS f, TIMESTAMP '2031-02-03 04:05:06' AS g, TIMETZ '10:00:00+02' AS h, " +
        "[$1] AS i, $1::VARCHAR AS j, union_value(x := $1) AS k, $1::VARIANT AS l";
      const params = [new Date("2031-03-30T01:30:00.123Z")];
      console.log(JSON.stringify([await engine.query({ text, params }), await engine.query({ text, params }).first()]));`;
    const answers = await Promise.all(["UTC", "America/Los_Angeles", "Asia/Tokyo"].map((TZ) => child(script, { TZ })));
    expect(answers[1]).toBe(answers[0]);
    expect(answers[2]).toBe(answers[0]);
    const row = {
      a: "2031-02-03T04:05:06.000000Z",
      b: "2031-03-30T01:30:00.123000Z",
      c: "2031-03-30",
      d: "2031-03-30T01:30:00.123000",
      e: "2031-03-30 01:30:00",
      f: "2031-03-30T00:00:00.000000Z",
      g: "2031-02-03T04:05:06.000000",
      h: "10:00:00+02",
      i: ["2031-03-30T01:30:00.123000Z"],
      j: "2031-03-30 01:30:00.123+00",
      k: "2031-03-30 01:30:00.123+00",
      l: "2031-03-30 01:30:00.123+00",
    };
    expect(JSON.parse(answers[0]!)).toEqual([[row], row]);
  });

  test("that never closes its engine, or leaves a stream open, ends by itself, and its temporary files with it", async () => {
    const out = await child(`${LAKE}
      const rows = engine.query({ text: "SELECT range FROM range(10000000)", params: [] })[Symbol.asyncIterator]();
      console.log((await rows.next()).value.range);`);
    expect(out).toBe("0n\n");
    expect(readdirSync(scratch.path)).toEqual([]);
  });

  test("that never closes its engine, or leaves a scope's stream open, ends by itself, and the scope's process with it", async () => {
    const entry = await buildScopeEntry();
    const out =
      await child(`${LAKE.replace("store: {}", `store: {}, scopeEntry: new URL(${JSON.stringify(String(entry))})`)}
      const processes = (await import("node:child_process")).default;
      const { fork } = processes;
      processes.fork = (...args) => {
        const started = fork(...args);
        console.log(started.pid);
        return started;
      };
      (await import("node:module")).syncBuiltinESMExports();
      const scope = engine.scope({ tables: {} });
      const running = await scope.start({ text: "FROM range(10000000)", params: [] }, {}, "stream");
      console.log((await running.chunks().next()).value.length > 0);`);
    const [, pid] = /^(\d+)\ntrue\n$/.exec(out)!;
    await expect.poll(() => isAlive(Number(pid)), { timeout: 10_000 }).toBe(false);
  });

  test("that was killed leaves files that the next one removes", async () => {
    await expect(
      child(`${LAKE} await engine.query({ text: "SELECT 1", params: [] }); process.kill(process.pid, "SIGKILL");`),
    ).rejects.toMatchObject({ signal: "SIGKILL" });
    expect(readdirSync(scratch.path).length).toBe(1);
    await child(`${LAKE} await engine.close();`);
    expect(readdirSync(scratch.path)).toEqual([]);
  });

  test("that only imports the package does not load DuckDB", async () => {
    const out =
      await child(`console.log(process.report.getReport().sharedObjects.filter((name) => name.includes("duckdb")).length);
      ${LAKE} console.log(process.report.getReport().sharedObjects.filter((name) => name.includes("duckdb")).length > 0);`);
    expect(out).toBe("0\ntrue\n");
  });
});
