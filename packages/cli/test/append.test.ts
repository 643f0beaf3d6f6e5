import { createHash } from "node:crypto";
import { appendFileSync, existsSync } from "node:fs";
import { copyFile, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { eider, eiderOk, temporaryFolder } from "./harness.js";

const folder = temporaryFolder();
let lakes = 0;

/** A path where no lake is yet. */
const newLake = (): string => join(folder, `lake-${++lakes}`);

async function file(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, content);
  return path;
}

const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex");

async function rows(lake: string, sql: string): Promise<unknown> {
  return JSON.parse((await eiderOk(["sql", lake, sql, "--format", "json"])).stdout);
}

describe("--parts", () => {
  const text = Array.from({ length: 100 }, (_, a) => `${JSON.stringify({ a }).padEnd(99)}\n`).join("");

  it("commits a file in parts, and goes on with what is missing", async () => {
    const lake = newLake();
    const path = await file("parts.ndjson", text);
    // 41 × 100 bytes are the first that reach 4 KiB.
    const id = `parts.ndjson@${sha256(text)}`;
    expect((await eiderOk(["append", lake, "t", path, "--parts=4KiB"])).stdout).toBe(
      `committed  parts.ndjson → t: 3 parts, 3 of them new, 100 rows, snapshot 4, batch ${id}\n`,
    );
    expect((await eiderOk(["append", lake, "t", path, "--parts=4096"])).stdout).toBe(
      `duplicate  parts.ndjson → t: 3 parts, 0 of them new, 100 rows, snapshot 4, batch ${id}\n`,
    );
    const { receipts } = JSON.parse((await eiderOk(["append", lake, "t", path, "--parts", "4kib", "--json"])).stdout);
    expect(receipts.map(({ rows }: { rows: number }) => rows)).toEqual([41, 41, 18]);
    expect(await rows(lake, "SELECT count(*) AS n FROM t")).toEqual([{ n: 100 }]);
  });

  it("takes the other formats too: an array by its elements", async () => {
    const lake = newLake();
    const path = await file("parts.json", `[${text.trimEnd().split("\n").join(",")}]`);
    // Elements follow each other by 100 bytes; the 42nd and then the 83rd begin 4 KiB behind the part.
    expect((await eiderOk(["append", lake, "t", path, "--parts=4KiB"])).stdout).toContain(
      "committed  parts.json → t: 3 parts, 3 of them new, 100 rows, snapshot 4",
    );
    const again = await eiderOk(["append", lake, "t", path, "--parts=4KiB", "--json"]);
    const { status, receipts } = JSON.parse(again.stdout);
    expect(status).toBe("duplicate");
    expect(receipts.map(({ rows }: { rows: number }) => rows)).toEqual([41, 41, 18]);
  });

  it("needs an id for what is read once, and a size that is one", async () => {
    const lake = newLake();
    const refused = await eider(["append", lake, "t", "-", "--parts"], { stdin: text });
    expect(refused).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("needs --batch-id") });
    for (const size of ["0", "4 parsecs", "-1", "1e3"]) {
      const bad = await eider(["append", lake, "t", "-", `--parts=${size}`, "--batch-id", "b"], { stdin: text });
      expect(bad, size).toMatchObject({ code: 2, stderr: expect.stringContaining("a size like 64MiB") });
    }
    const taken = await eiderOk(["append", lake, "t", "-", "--batch-id", "b", "--parts"], { stdin: text });
    expect(taken.stdout).toMatch(/1 part, 1 of them new, 100 rows/);
  });
});

describe("the default batch id", () => {
  it("is the file's name and the hash of its content", async () => {
    const lake = newLake();
    const text = "id,name\n1,Ada\n2,Bob\n";
    const path = await file("people.csv", text);
    const first = await eiderOk(["append", lake, "people", path, "--json"]);
    expect(JSON.parse(first.stdout)).toEqual({
      file: path,
      status: "committed",
      rowsAdded: 2,
      rowsRejected: 0,
      receipt: {
        table: "people",
        batchId: `people.csv@${sha256(text)}`,
        snapshot: 1,
        rows: 2,
        rejected: 0,
        contentHash: `bytes:${sha256(text)}`,
        committedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    });

    // The same file again, also from another folder, is a duplicate with the same receipt.
    const { receipt } = JSON.parse(first.stdout) as { receipt: object };
    const elsewhere = await file("elsewhere/people.csv", text);
    for (const again of [path, elsewhere]) {
      const result = JSON.parse((await eiderOk(["append", lake, "people", again, "--json"])).stdout);
      expect(result).toEqual({ file: again, status: "duplicate", rowsAdded: 0, rowsRejected: 0, receipt });
    }

    // Changed content is a new batch; so is the same content under another name.
    await writeFile(path, `${text}3,Cy\n`);
    expect((await eiderOk(["append", lake, "people", path])).stdout).toBe(
      `committed  people.csv → people: 3 rows, snapshot 2, batch people.csv@${sha256(`${text}3,Cy\n`)}\n`,
    );
    await copyFile(elsewhere, join(folder, "more.csv"));
    expect((await eiderOk(["append", lake, "people", join(folder, "more.csv")])).stdout).toMatch(/^committed/);
    expect(await rows(lake, "SELECT count(*) AS n FROM people")).toEqual([{ n: 7 }]);
  });

  it("is of the file as it lies there, also compressed", async () => {
    const lake = newLake();
    const packed = gzipSync('{"a":1}\n');
    const path = await file("a.ndjson.gz", packed);
    const { receipt } = JSON.parse((await eiderOk(["append", lake, "t", path, "--json"])).stdout) as {
      receipt: { batchId: string; contentHash: string };
    };
    expect(receipt.batchId).toBe(`a.ndjson.gz@${sha256(packed)}`);
    expect(receipt.contentHash).toBe(`bytes:${sha256('{"a":1}\n')}`);
    expect((await eiderOk(["append", lake, "t", path])).stdout).toMatch(/^duplicate/);
  });

  it("never stands for content that changed while it was read", async () => {
    const lake = newLake();
    const line = `${JSON.stringify({ a: 1, text: "x".repeat(200) })}\n`;
    const path = await file("growing.ndjson", line.repeat(150_000));
    let grown = false;
    const outcome = await eider(["append", lake, "t", path], {
      interactive: true,
      onStderr: (text) => {
        if (grown || !/read /.test(text)) return;
        grown = true;
        appendFileSync(path, line);
      },
    });
    expect(grown).toBe(true);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toContain(`file_changed: ${path} changed while it was read: append it again\n`);
    expect((await eiderOk(["tables", lake, "--json"])).stdout).toBe("[]\n");
    await eiderOk(["append", lake, "t", path]);
    expect(await rows(lake, "SELECT count(*) AS n FROM t")).toEqual([{ n: 150_001 }]);
  });
});

describe("--batch-id", () => {
  it("commits once, and is a conflict with other content", async () => {
    const lake = newLake();
    const a = await file("a.csv", "x\n1\n");
    const b = await file("b.csv", "x\n2\n");
    expect((await eiderOk(["append", lake, "t", a, "--batch-id", "day-1"])).stdout).toMatch(
      /^committed .*batch day-1\n$/,
    );
    expect((await eiderOk(["append", lake, "t", a, "--batch-id", "day-1"])).stdout).toMatch(/^duplicate /);
    const conflict = await eider(["append", lake, "t", b, "--batch-id", "day-1"]);
    expect(conflict).toMatchObject({ code: 1, stdout: "" });
    expect(conflict.stderr).toMatch(/^batch_conflict: batch "day-1" of table t was committed in snapshot 1/);
    expect(await rows(lake, "FROM t")).toEqual([{ x: 1 }]);
  });

  it("is for one input", async () => {
    const lake = newLake();
    const a = await file("a.csv", "x\n1\n");
    const outcome = await eider(["append", lake, "t", a, a, "--batch-id", "b"]);
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(outcome.stderr).toMatch(/^error: --batch-id names one batch, but there are several files/);
    expect(existsSync(lake)).toBe(false);
  });
});

describe("standard input", () => {
  it.each([[["-"]], [[]]])("as %j", async (named) => {
    const lake = newLake();
    const args = ["append", lake, "t", ...named, "--batch-id", "b"];
    const stdin = '{"a":9007199254740993}\n{"a":null}\n';
    expect((await eiderOk(args, { stdin })).stdout).toBe(
      "committed  standard input → t: 2 rows, snapshot 1, batch b\n",
    );
    expect((await eiderOk(args, { stdin })).stdout).toMatch(/^duplicate/);
    expect(await rows(lake, "FROM t")).toEqual([{ a: "9007199254740993" }, { a: null }]);
  });

  it("has no id of its own: each time is a new batch", async () => {
    const lake = newLake();
    const results = [];
    for (let i = 0; i < 2; i++) {
      results.push(JSON.parse((await eiderOk(["append", lake, "t", "-", "--json"], { stdin: '{"a":1}\n' })).stdout));
    }
    expect(results).toMatchObject([{ status: "committed", file: "-" }, { status: "committed" }]);
    expect(await rows(lake, "SELECT count(*) AS n FROM t")).toEqual([{ n: 2 }]);
  });

  it("is not waited for where a person sits, unless asked for", async () => {
    const lake = newLake();
    const outcome = await eider(["append", lake, "t"], { interactive: true });
    expect(outcome.code).toBe(2);
    expect(outcome.stderr).toMatch(/^error: name files to append, or - to type rows here/);
    expect(existsSync(lake)).toBe(false);
    expect((await eiderOk(["append", lake, "t", "-"], { interactive: true, stdin: '{"a":1}\n' })).stdout).toMatch(
      /^committed/,
    );
    expect((await eider(["append", lake, "t", "-", "-"], { stdin: '{"a":1}\n' })).code).toBe(2);
  });

  it("without a byte takes no batch id: the command before the pipe has failed", async () => {
    const lake = newLake();
    const empty = await eider(["append", lake, "t", "-", "--batch-id", "b"], { stdin: "" });
    expect(empty).toMatchObject({ code: 1, stdout: "" });
    expect(empty.stderr).toBe("empty_input: standard input gave no byte: nothing was committed\n");
    expect((await eiderOk(["append", lake, "t", "-", "--batch-id", "b"], { stdin: '{"a":1}\n' })).stdout).toMatch(
      /^committed/,
    );
    // A file that is empty, or a header without rows, was meant so.
    expect((await eiderOk(["append", lake, "t", await file("empty.csv", "")])).stdout).toMatch(
      /^committed .*: 0 rows,/,
    );
    expect((await eiderOk(["append", lake, "t", "-", "--format", "csv"], { stdin: "a,b\n" })).stdout).toMatch(
      /: 0 rows,/,
    );
  });

  it("that fails is an error of the input", async () => {
    const lake = newLake();
    const stdin = Readable.from(
      (async function* () {
        yield Buffer.from('{"a":1}\n');
        throw Object.assign(new Error("read failed"), { code: "EIO" });
      })(),
    );
    const outcome = await eider(["append", lake, "t", "-"], { stdin });
    expect(outcome).toMatchObject({ code: 1, stdout: "", stderr: "input_failed: cannot read standard input (EIO)\n" });
    expect((await eiderOk(["tables", lake, "--json"])).stdout).toBe("[]\n");
  });
});

describe("options", () => {
  it("--format says what content and name do not", async () => {
    const lake = newLake();
    const path = await file("export.txt", "a,b\n1,x\n");
    expect((await eider(["append", lake, "t", path])).stderr).toMatch(/\nhint: --format says what the input is\n$/);
    await eiderOk(["append", lake, "t", path, "--format", "csv"]);
    expect(await rows(lake, "FROM t")).toEqual([{ a: 1, b: "x" }]);
  });

  it("--delimiter and --no-header read other CSV", async () => {
    const lake = newLake();
    const path = await file("odd.csv", "1|a,b\n2|c,d\n");
    await eiderOk(["append", lake, "t", path, "--delimiter", "|", "--no-header"]);
    expect(await rows(lake, "FROM t")).toEqual([
      { column_1: 1, column_2: "a,b" },
      { column_1: 2, column_2: "c,d" },
    ]);
    const tabs = await file("tabs.csv", "a\tb\n1\t2\n");
    await eiderOk(["append", lake, "t2", tabs, "--delimiter", "\\t"]);
    expect(await rows(lake, "FROM t2")).toEqual([{ a: 1, b: 2 }]);
    expect((await eider(["append", lake, "t", path, "--delimiter", "||"])).code).toBe(2);
  });

  it("--partition-by and --order-by, before the files, several by commas or by repeating", async () => {
    const lake = newLake();
    const path = await file(
      "p.ndjson",
      '{"id":2,"day":"2031-02-03T00:00:00Z","a,b":"x"}\n{"id":1,"day":"2031-02-04T00:00:00Z","a,b":"y"}\n',
    );
    const layout = [
      "--partition-by",
      'day(day), bucket(4, "a,b")',
      "--partition-by",
      "id",
      "--order-by",
      "id desc,day",
    ];
    await eiderOk(["append", lake, "t", ...layout, path]);
    const table = JSON.parse((await eiderOk(["schema", lake, "t", "--json"])).stdout) as object;
    expect(table).toMatchObject({
      partitionBy: ["day(day)", 'bucket(4, "a,b")', "id"],
      orderBy: ["id desc", "day"],
      rows: 2,
    });

    // They are fixed with the table.
    const other = await eider(["append", lake, "t", await file("q.ndjson", '{"id":3}\n'), "--partition-by", "id"]);
    expect(other.code).toBe(1);
    expect(other.stderr).toMatch(/^table_differs: /);
    expect((await eider(["append", lake, "u", path, "--partition-by", "id,,day"])).code).toBe(2);
  });

  it("--schema-mode", async () => {
    const lake = newLake();
    await eiderOk(["append", lake, "t", "-"], { stdin: '{"a":1}\n' });
    const stdin = '{"a":2,"b":3}\n{"a":3,"b":4}\n';
    expect((await eider(["append", lake, "t", "-", "--schema-mode", "strict"], { stdin })).code).toBe(1);
    expect((await eiderOk(["append", lake, "t", "-", "--schema-mode", "ignore"], { stdin })).stdout).toMatch(
      /: 2 rows, fields ignored: b \(2\), snapshot 2,/,
    );
    expect(await rows(lake, "FROM t")).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }]);
    await eiderOk(["append", lake, "t", "-"], { stdin });
    expect(await rows(lake, "SELECT sum(b) AS b FROM t")).toEqual([{ b: 7 }]);
  });
});

describe("rows that cannot be taken", () => {
  it("are listed, and nothing is committed", async () => {
    const lake = join(folder, "it's a lake");
    const path = await file("bad.ndjson", '{"a":1}\n{"a":\n[3]\n{"a":4}\n');
    const outcome = await eider(["append", lake, "t", path]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    const lines = outcome.stderr.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^rejected_rows: 2 rows cannot be taken, nothing was committed/);
    expect(lines.slice(1)).toEqual([
      expect.stringMatching(/^ {2}line 2: /),
      expect.stringMatching(/^ {2}line 3: /),
      // Ready for a shell.
      `hint: --on-reject quarantine takes the other rows and keeps these aside; eider rejects '${lake.replace("'", "'\\''")}' t lists them`,
    ]);
    expect((await eiderOk(["tables", lake, "--json"])).stdout).toBe("[]\n");
  });

  it("are kept aside with --on-reject quarantine, and listed by rejects", async () => {
    const lake = newLake();
    const path = await file("half.csv", "a,b\n1,2\n3\n4,5,6\n7,8\n");
    expect((await eiderOk(["append", lake, "t", path, "--on-reject", "quarantine"])).stdout).toMatch(
      /^committed {2}half\.csv → t: 2 rows, 2 rows rejected, snapshot 1,/,
    );
    expect(await rows(lake, "FROM t")).toEqual([
      { a: 1, b: 2 },
      { a: 7, b: 8 },
    ]);
    const rejects = JSON.parse((await eiderOk(["rejects", lake, "t", "--json"])).stdout) as {
      line: number;
      raw: string;
    }[];
    expect(rejects).toMatchObject([
      { table: "t", snapshot: 1, line: 3, raw: "3" },
      { table: "t", snapshot: 1, line: 4, raw: "4,5,6" },
    ]);
    const text = (await eiderOk(["rejects", lake, "t"])).stdout.trimEnd().split("\n");
    expect(text.slice(2)).toEqual([expect.stringMatching(/ 3 .* 3$/), expect.stringMatching(/ 4 .*4,5,6$/)]);
  });
});

describe("several files", () => {
  it("are a batch each, in order", async () => {
    const lake = newLake();
    const paths = [];
    for (const i of [1, 2, 3]) paths.push(await file(`several/${i}.csv`, `x\n${i}\n`));
    const lines = (await eiderOk(["append", lake, "t", ...paths, "--json"])).stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(
      paths.map((path, i) => ({ file: path, status: "committed", receipt: { snapshot: i + 1, rows: 1 } })),
    );
  });

  it("one of which fails: what was done is said, and running the same command again does the rest", async () => {
    const lake = newLake();
    const a = await file("s/a.csv", "x\n1\n");
    const b = await file("s/b.ndjson", '{"x":\n');
    const c = await file("s/c.csv", "x\n3\n");
    const outcome = await eider(["append", lake, "t", a, b, c]);
    expect(outcome.code).toBe(1);
    expect(outcome.stdout).toMatch(/^committed {2}a\.csv → t: 1 row, .*\n$/);
    expect(outcome.stderr).toMatch(/^rejected_rows: /);
    expect(outcome.stderr.trimEnd().split("\n").at(-2)).toBe(
      `${b} is file 2 of 3; committed: ${a}; not tried: ${c}. Run the same command again: what is committed will be a duplicate.`,
    );
    await writeFile(b, '{"x":2}\n');
    expect((await eiderOk(["append", lake, "t", a, b, c])).stdout.match(/^\w+/gm)).toEqual([
      "duplicate",
      "committed",
      "committed",
    ]);
    expect(await rows(lake, "SELECT sum(x) AS s, count(*) AS n FROM t")).toEqual([{ s: 6, n: 3 }]);
  });

  it("one of which cannot be read: nothing is begun, and no lake is made", async () => {
    const lake = newLake();
    const a = await file("s/a.csv", "x\n1\n");
    const missing = await eider(["append", lake, "t", a, join(folder, "none.csv")]);
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toBe(`file_not_found: there is no file ${join(folder, "none.csv")}\n`);
    const directory = await eider(["append", lake, "t", a, folder]);
    expect(directory.stderr).toMatch(/^bad_source: .* is a folder: name its files/);
    expect(existsSync(lake)).toBe(false);
  });
});

describe("the lake", () => {
  it("is a folder: memory would be gone with the command", async () => {
    const outcome = await eider(["append", "memory:", "t", "-"], { stdin: '{"a":1}\n' });
    expect(outcome.code).toBe(2);
    expect(outcome.stderr).toMatch(/^error: a lake in memory would end with this command/);
  });

  it("is not made of a folder with other files in it", async () => {
    await file("home/notes.txt", "mine");
    const outcome = await eider(["append", join(folder, "home"), "t", "-"], { stdin: '{"a":1}\n' });
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toMatch(/^not_a_lake: /);
  });

  it("takes names that other things take for their own", async () => {
    const lake = newLake();
    const name = 'it\'s "x"; DROP TABLE b; --';
    const stdin = '{"__proto__":1}\n';
    const outcome = await eiderOk(["append", lake, name, "-", "--batch-id", "__proto__"], { stdin });
    expect(outcome.stdout).toBe(
      'committed  standard input → it\'s "x"; DROP TABLE b; --: 1 row, snapshot 1, batch __proto__\n',
    );
    expect((await eiderOk(["receipt", lake, name, "__proto__", "--json"])).stdout).toContain('"rows":1');
    expect((await eiderOk(["sql", lake, `FROM "${name.replaceAll('"', '""')}"`, "--format", "ndjson"])).stdout).toBe(
      '{"__proto__":1}\n',
    );
  });

  it("and messages never drive the terminal, whatever names hold", async () => {
    const lake = newLake();
    const path = await file("odd\u001b[31m\u202e.csv", "a,b\n1,2\n");
    expect((await eiderOk(["append", lake, "t", path])).stdout).toMatch(
      /^committed {2}odd\\u001b\[31m\\u202e\.csv → t:/,
    );
    const refused = await eider(["append", lake, "t\u009b", path, "--batch-id", "b"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^bad_name: .*\\u009b/);
  });
});

describe("Ctrl-C", () => {
  it("while a file is read: 130, nothing of it is committed, the same command finishes", async () => {
    const lake = newLake();
    const first = await file("i/1.csv", "a\n0\n");
    const path = await file("i/big.ndjson", `${JSON.stringify({ a: 1, text: "x".repeat(200) })}\n`.repeat(150_000));
    let interrupted = false;
    const outcome = await eider(["append", lake, "t", first, path], {
      interactive: true,
      onStderr: (text, interrupt) => {
        if (interrupted || !/big\.ndjson .*read /.test(text)) return;
        interrupted = true;
        interrupt();
      },
    });
    expect(interrupted).toBe(true);
    expect(outcome.code).toBe(130);
    expect(outcome.stderr).toContain(
      `interrupted\n${path} is file 2 of 2; committed: ${first}. Run the same command again: what is committed will be a duplicate.\n`,
    );
    expect(await rows(lake, "SELECT count(*) AS n FROM t")).toEqual([{ n: 1 }]);
    expect(JSON.parse((await eiderOk(["verify", lake, "--json"])).stdout)).toMatchObject({ ok: true, findings: [] });
    expect((await eiderOk(["append", lake, "t", first, path])).stdout.match(/^\w+/gm)).toEqual([
      "duplicate",
      "committed",
    ]);
    expect(await rows(lake, "SELECT count(*) AS n FROM t")).toEqual([{ n: 150_001 }]);
  });

  it("while standard input has nothing to say", async () => {
    const lake = newLake();
    const stdin = new Readable({ read() {} });
    stdin.push('{"a":1}\n');
    const outcome = await eider(["append", lake, "t", "-"], { stdin, interruptAfterMs: 50 });
    expect(outcome).toMatchObject({ code: 130, stdout: "" });
    expect((await eiderOk(["tables", lake, "--json"])).stdout).toBe("[]\n");
  });
});

describe("progress", () => {
  it("is on standard error, and only where that is a terminal", async () => {
    const path = await file("progress.ndjson", `${JSON.stringify({ a: 1 })}\n`.repeat(100_000));
    const seen = await eiderOk(["append", newLake(), "t", path], { interactive: true });
    expect(seen.stderr).toMatch(/progress\.ndjson {2}[█░]{24} (hash|read|upload|commit) [\d.]+ (B|KiB|MiB)/);
    expect(seen.stdout).toMatch(/^committed/);
    const piped = await eiderOk(["append", newLake(), "t", path]);
    expect(piped.stderr).toBe("");
  });
});

it("a renamed lake is still the lake", async () => {
  const lake = newLake();
  await eiderOk(["append", lake, "t", "-", "--batch-id", "b"], { stdin: '{"a":1}\n' });
  await rename(lake, `${lake}-moved`);
  expect(
    (await eiderOk(["append", `${lake}-moved`, "t", "-", "--batch-id", "b"], { stdin: '{"a":1}\n' })).stdout,
  ).toMatch(/^duplicate/);
});
