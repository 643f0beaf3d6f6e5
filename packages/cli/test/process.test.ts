import { once } from "node:events";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { bash, startEider, temporaryFolder } from "./harness.js";

/** The command as a process of its own, from the build. */
const folder = temporaryFolder();

const ok = async (line: string): Promise<string> => {
  const { code, stdout, stderr } = await bash(`set -e -o pipefail; ${line}`, folder);
  expect([line, code, stderr]).toEqual([line, 0, ""]);
  return stdout;
};

beforeAll(async () => {
  await writeFile(join(folder, "a.csv"), "id,name\n1,Ada\n2,Bob\n");
  await ok("eider append lake people a.csv");
});

describe("exit status", () => {
  it("0 done, 1 failed, 2 wrong usage; output on stdout, trouble on stderr", async () => {
    expect(await ok("eider append lake people a.csv")).toMatch(/^duplicate {2}a\.csv → people: 2 rows, snapshot 1,/);
    expect(await ok("eider sql lake 'SELECT name FROM people ORDER BY id' --format csv")).toBe("name\nAda\nBob\n");
    const failed = await bash("eider sql lake 'FROM nobody'", folder);
    expect(failed).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/^unknown_table: /) });
    const usage = await bash("eider sql", folder);
    expect(usage).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^error: missing required argument/),
    });
  });

  it("output that cannot be written is a failure", async () => {
    if (!existsSync("/dev/full")) return;
    const full = await bash("eider sql lake 'FROM range(100000)' --format csv > /dev/full", folder);
    expect(full).toMatchObject({
      code: 1,
      stderr: "output_failed: cannot write the output (ENOSPC): it is incomplete\n",
    });
  });
});

describe("pipes", () => {
  it("are read as -, and from what a shell makes of a command", async () => {
    expect(await ok("cat a.csv | eider append lake piped - --format csv --batch-id b")).toMatch(/^committed/);
    expect(await ok("eider append lake piped - --format csv --batch-id b < a.csv")).toMatch(/^duplicate/);
    expect(await ok("eider append lake named --format csv <(cat a.csv)")).toMatch(/^committed .*: 2 rows,/);
    expect(
      await ok(
        "eider append lake named --format csv <(cat a.csv) --batch-id c; eider append lake named --format csv <(cat a.csv) --batch-id c",
      ),
    ).toMatch(/^committed .*: 2 rows,.*\nduplicate .*\n$/);
    expect(await ok("mkfifo pipe; cat a.csv > pipe & eider append lake named pipe --format csv --batch-id d")).toMatch(
      /: 2 rows,/,
    );
    expect(await ok("echo 'SELECT count(*) AS n FROM named' | eider sql lake - --format ndjson")).toBe('{"n":6}\n');
    expect(await ok("eider sql lake 'FROM people' --format csv | eider append lake copy - --format csv")).toMatch(
      /: 2 rows,/,
    );
    for (const format of ["parquet", "arrow"]) {
      const line = `eider sql lake 'FROM people' --format ${format} | eider append lake copy -`;
      expect(await ok(line)).toMatch(/^committed .*: 2 rows,/);
    }
    expect(await ok("eider sql lake 'SELECT count(*) AS n, sum(id) AS s FROM copy' --format ndjson")).toBe(
      '{"n":6,"s":9}\n',
    );
  });

  it("that close early end a query quietly", async () => {
    for (const format of ["csv", "ndjson", "json", "arrow", "parquet"]) {
      const line = `eider sql lake 'SELECT range AS n, range::VARCHAR AS t FROM range(3000000)' --format ${format} | head -c 10 | wc -c; echo "\${PIPESTATUS[0]}"`;
      expect(await bash(line, folder)).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^ *10\n0\n$/),
        stderr: "",
      });
    }
    expect(await bash("set -o pipefail; eider --help | head -1; echo $?", folder)).toMatchObject({
      stdout: "Usage: eider [options] [command]\n0\n",
      stderr: "",
    });
  });

  it("that close early end no append", async () => {
    const files = Array.from({ length: 8 }, (_, i) => `f${i}.ndjson`);
    for (const [i, name] of files.entries()) await writeFile(join(folder, name), `{"i":${i}}\n`);
    const outcome = await bash(`eider append lake all ${files.join(" ")} | true; echo "\${PIPESTATUS[0]}"`, folder);
    expect(outcome).toMatchObject({ stdout: "0\n", stderr: "" });
    expect(await ok("eider sql lake 'SELECT count(*) AS n FROM all' --format ndjson".replace("all'", '"all"\''))).toBe(
      '{"n":8}\n',
    );
  });

  it("that nobody reads errors from change no exit status", async () => {
    const outcome = await bash("{ eider sql lake 'FROM nobody'; echo $? >&3; } 3>&1 2>&1 >/dev/null | true", folder);
    expect(outcome.code).toBe(0);
    const status = await bash(
      "(eider sql lake 'FROM nobody' 2>&1 >/dev/null; echo $? > status) | true; cat status",
      folder,
    );
    expect(status.stdout).toBe("1\n");
  });
});

describe.each(["SIGINT", "SIGTERM"] as const)("%s during a large append", (signal) => {
  it("ends with 130, nothing half-committed, and a retry commits", async () => {
    const lake = `interrupted-${signal}`;
    const line = `${JSON.stringify({ id: 1, text: "x".repeat(200) })}\n`;
    const piece = Buffer.from(line.repeat(5000));
    const pieces = 60;
    const { child, ended } = startEider(["append", lake, "t", "-", "--batch-id", "b", "--partition-by", "id"], folder);
    // Standard input stays open: whatever has been read by now, it is not all.
    for (let i = 0; i < pieces; i++) if (!child.stdin.write(piece)) await once(child.stdin, "drain");
    child.kill(signal);
    expect(await ended).toMatchObject({ code: 130, stdout: "", stderr: "interrupted\n" });
    expect(await ok(`eider tables ${lake} --json`)).toBe("[]\n");
    expect(JSON.parse(await ok(`eider verify ${lake} --json`))).toMatchObject({ ok: true, findings: [] });

    const retry = startEider(["append", lake, "t", "-", "--batch-id", "b", "--partition-by", "id"], folder);
    for (let i = 0; i < pieces; i++) if (!retry.child.stdin.write(piece)) await once(retry.child.stdin, "drain");
    retry.child.stdin.end();
    expect((await retry.ended).stdout).toMatch(/^committed .*: 300,000 rows, snapshot 1, batch b\n$/);
    expect(await ok(`eider sql ${lake} 'SELECT count(*) AS n, sum(id) AS s FROM t' --format ndjson`)).toBe(
      '{"n":300000,"s":300000}\n',
    );
  });
});

it("SIGINT ends a query in the middle of its rows", async () => {
  const query = "SELECT range AS n FROM range(100000000000)";
  const { child, ended } = startEider(["sql", "lake", query, "--format", "ndjson"], folder);
  child.stdout.once("data", () => child.kill("SIGINT"));
  expect(await ended).toMatchObject({
    code: 130,
    stdout: expect.stringMatching(/^\{"n":0\}\n/),
    stderr: "interrupted\n",
  });
});

it("loads DuckDB only for SQL", async () => {
  await writeFile(
    join(folder, "probe.mjs"),
    'process.on("exit", () => console.error(process.report.getReport().sharedObjects.filter((path) => /duckdb/.test(path)).length > 0));',
  );
  const loads = async (line: string): Promise<string> =>
    (await bash(`export NODE_OPTIONS="--import ./probe.mjs"; ${line}`, folder)).stderr;
  expect(await loads("eider append fresh t a.csv")).toBe("false\n");
  expect(await loads("eider tables fresh")).toBe("false\n");
  expect(await loads("eider sql fresh 'FROM t'")).toBe("true\n");
});
