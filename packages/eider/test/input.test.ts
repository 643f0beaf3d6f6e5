import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { sha256Hex } from "@eider/core/node";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { Lake, type Source } from "eider";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";

const CSV = "id,name\n1,ada\n2,bob\n";
const ROWS = [
  { id: 1n, name: "ada" },
  { id: 2n, name: "bob" },
];

const folder = temporaryFolder();
const at = (name: string): string => join(folder, name);

let lake: Lake;
beforeAll(async () => {
  lake = await Lake.open("memory:");
  await writeFile(at("people.csv"), CSV);
  await writeFile(at("people.txt"), CSV);
});
afterAll(() => lake.close());

describe("CSV, which its content does not show, is known by", () => {
  const csv = (type: string): ResponseInit => ({ headers: { "content-type": type } });
  const sources: Record<string, () => Source> = {
    "the name of a file": () => ({ file: at("people.csv") }),
    "a URL as the file": () => ({ file: pathToFileURL(at("people.csv")) }),
    "a URL as the url": () => ({ url: pathToFileURL(at("people.csv")) }),
    "the file of a stream": () => createReadStream(at("people.csv")),
    "the name of a File": () => new File([CSV], "people.csv"),
    "the type of a Blob": () => new Blob([CSV], { type: "text/csv" }),
    "the type of a Response": () => new Response(CSV, csv("text/csv")),
    "a type with parameters, in capitals": () => new Response(CSV, csv("Text/CSV; charset=utf-8")),
    "its older type": () => new Response(CSV, csv("application/csv")),
  };
  let tables = 0;
  for (const [name, source] of Object.entries(sources)) {
    it(name, async () => {
      const table = lake.table(`csv_${++tables}`);
      expect((await table.append(source())).rowsAdded).toBe(2);
      expect(await lake.sql(`SELECT * FROM ${table.name} ORDER BY id`)).toEqual(ROWS);
    });
  }

  it("the type that a server says, where the path has no ending", async () => {
    const server = createServer((_, response) => {
      response.setHeader("content-type", "text/csv; charset=utf-8").end(CSV);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      await lake.table("served").append({ url: new URL(`http://127.0.0.1:${port}/export?format=csv`) });
      expect(await lake.sql`SELECT * FROM served ORDER BY id`).toEqual(ROWS);
    } finally {
      server.close();
    }
  });
});

it("tabs by their type", async () => {
  await lake.table("tabs").append(new Blob(["a\tb\n1,5\tx\n"], { type: "text/tab-separated-values" }));
  expect(await lake.sql`SELECT * FROM tabs`).toEqual([{ a: "1,5", b: "x" }]);
});

it("content and name count more than a type, which servers often have wrong", async () => {
  const json = new Response('{"a":1}\n{"a":2}\n', { headers: { "content-type": "text/plain" } });
  expect((await lake.table("plain").append(json)).rowsAdded).toBe(2);
  const named = new File(['{"a":1}\n{"a":2}\n'], "rows.ndjson", { type: "text/csv" });
  expect((await lake.table("named").append(named)).rowsAdded).toBe(2);
});

it("an unknown format is asked for", async () => {
  await expect(lake.table("unknown").append({ file: at("people.txt") })).rejects.toThrow("pass format (ndjson,");
});

describe("a file of several pieces comes in whole", { timeout: 60_000 }, () => {
  // Hashes do not compress, and DuckDB can tell whether each is where it belongs.
  const rows = Array.from({ length: 100_000 }, (_, id) => ({ id, v: sha256Hex(String(id)) }));
  const ndjson = (): string => rows.map((row) => JSON.stringify(row)).join("\n");
  const files: Record<string, () => string | Uint8Array> = {
    "plain.ndjson": ndjson,
    "packed.ndjson.gz": () => gzipSync(ndjson()),
    "table.csv": () => `id,v\n${rows.map(({ id, v }) => `${id},${v}`).join("\n")}`,
    "stream.arrows": () => tableToIPC(tableFromArrays({ id: rows.map(({ id }) => id), v: rows.map(({ v }) => v) })),
    "file.arrow": () =>
      tableToIPC(tableFromArrays({ id: rows.map(({ id }) => id), v: rows.map(({ v }) => v) }), "file"),
  };
  for (const [name, content] of Object.entries(files)) {
    it(name, async () => {
      await writeFile(at(name), content());
      const table = lake.table(name.replaceAll(".", "_"));
      await table.append({ file: at(name) });
      const right = `SELECT count(*) AS n FROM ${table.name} WHERE sha256(id::BIGINT::VARCHAR) = v`;
      expect(await lake.sql(right)).toEqual([{ n: 100_000n }]);
    });
  }
});

it("a stream whose pieces share one buffer is kept as it was", async () => {
  const lines = ['{"id":1,"v":"a"}\n', '{"id":2,"v":"b"}\n', '{"id":3,"v":"c"}\n'];
  async function* reusing(): AsyncIterable<Uint8Array> {
    const buffer = Buffer.alloc(100);
    for (const line of lines) yield buffer.subarray(0, buffer.write(line));
  }
  // Without a schema the stream is read twice.
  await lake.table("reused").append(reusing());
  expect(await lake.sql`SELECT id, v FROM reused ORDER BY id`).toEqual([
    { id: 1n, v: "a" },
    { id: 2n, v: "b" },
    { id: 3n, v: "c" },
  ]);
});

describe("what is no source is told what is one", () => {
  const sources: Record<string, [unknown, string]> = {
    undefined: [undefined, "cannot append undefined: pass an array of rows,"],
    null: [null, "cannot append null: pass an array of rows,"],
    "a number": [7, "cannot append a number: pass an array of rows,"],
    "one row": [{ id: 1 }, "cannot append a single object: pass an array of rows,"],
    "a file that is a number": [{ file: 7 }, "{ file } and { url } take a text or a URL"],
  };
  for (const [name, [source, message]] of Object.entries(sources)) {
    it(name, async () => {
      await expect(lake.table("none").append(source as Source)).rejects.toThrow(message);
    });
  }
});

describe("Lake.open", () => {
  it("takes the URL of a folder", async () => {
    const first = await Lake.open(pathToFileURL(at("lake")));
    const second = await Lake.open(at("lake"));
    expect(second.id).toBe(first.id);
    await Promise.all([first.close(), second.close()]);
  });

  it.each([undefined, null, 7, {}, { store: {} }])("refuses %j and says what it takes", async (where) => {
    await expect(Lake.open(where as never)).rejects.toMatchObject({ name: "InvalidInputError", code: "bad_location" });
  });
});
