/**
 * Makes the vectors of this folder that npm's tools write: DuckDB, hyparquet-writer and parquet-wasm, in the versions of
 * package.json. Run from here: `node make.mjs`. The rows are written by hand.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { parquetMetadata } from "hyparquet";
import { ByteWriter, parquetWrite } from "hyparquet-writer";
import { Compression, Table, WriterPropertiesBuilder, WriterVersion, writeParquet } from "parquet-wasm/node";
// Not exported, and the only writer of footers at hand.
import { writeMetadata } from "../../node_modules/hyparquet-writer/src/metadata.js";

const versionOf = (name) => JSON.parse(readFileSync(`../../node_modules/${name}/package.json`, "utf8")).version;
const rowText = (rows) => (rows.length === 0 ? "[]\n" : `[${rows.map((row) => JSON.stringify(row)).join(",\n ")}]\n`);

function vector(name, about, written, schema, rows, more = {}) {
  mkdirSync(name, { recursive: true });
  const inputs = [{ file: "input.parquet", format: "parquet" }];
  const head = { about, written, expected: "by hand", ...more, inputs };
  writeFileSync(`${name}/vector.json`, `${JSON.stringify(head, null, 2)}\n`);
  writeFileSync(`${name}/schema.json`, `${JSON.stringify(schema, null, 2)}\n`);
  writeFileSync(`${name}/rows.json`, rowText(rows));
}

async function duckdb() {
  const written = `DuckDB ${versionOf("@duckdb/node-api")}`;
  const connection = await (await DuckDBInstance.create()).connect();
  const select = `SELECT * FROM (VALUES
    (18446744073709551615::UBIGINT, 170141183460469231731687303715884105727::HUGEINT, '-0.50'::DECIMAL(4,2), 'a', 'f79c3e09-677c-4bbd-a479-3f349cb785e7'::UUID,
      TIMESTAMPTZ '2031-02-27 23:06:40.123456Z', TIME '23:59:59.999999', [1, NULL]::INTEGER[], {a: 'x', b: [{c: 1.5::DOUBLE}]}, MAP {'k': 1::TINYINT}, [1.5, 2.5]::FLOAT[2], 'happy'::ENUM('sad', 'happy'), '[1, 2]'::JSON),
    (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (9223372036854775808, -1, '99.99', '', '00000000-0000-0000-0000-000000000000', '1969-12-31 23:59:59.999999Z', '00:00:00', [], {a: NULL, b: []}, MAP {}, [0, -1], 'sad', 'null')
  ) t(u64, huge, dec, s, id, tz, t, l, st, m, arr, en, j)`;
  // DuckDB stores a HUGEINT as a DOUBLE: rounded where it was written, not where it is read.
  const schema = {
    u64: "uint64",
    huge: "float64",
    dec: "decimal(4,2)",
    s: "string",
    id: "uuid",
    tz: "timestamptz",
    t: "time",
    l: "list<int32>",
    st: "struct<a: string, b: list<struct<c: float64>>>",
    m: "map<string,int8>",
    arr: "list<float32>",
    en: "string",
    j: "json",
  };
  const none = Object.fromEntries(Object.keys(schema).map((name) => [name, null]));
  const rows = [
    {
      u64: "18446744073709551615",
      huge: 2 ** 127,
      dec: "-0.50",
      s: "a",
      id: "f79c3e09-677c-4bbd-a479-3f349cb785e7",
      tz: "2031-02-27T23:06:40.123456Z",
      t: "23:59:59.999999",
      l: [1, null],
      st: { a: "x", b: [{ c: 1.5 }] },
      m: { k: 1 },
      arr: [1.5, 2.5],
      en: "happy",
      j: "[1, 2]",
    },
    { ...none, u64: 0 },
    {
      u64: "9223372036854775808",
      huge: -1,
      dec: "99.99",
      s: "",
      id: "00000000-0000-0000-0000-000000000000",
      tz: "1969-12-31T23:59:59.999999Z",
      t: "00:00:00.000000",
      l: [],
      st: { a: null, b: [] },
      m: {},
      arr: [0, -1],
      en: "sad",
      j: "null",
    },
  ];
  for (const [name, options] of Object.entries({
    "duckdb-v1": "PARQUET_VERSION v1, COMPRESSION snappy",
    "duckdb-v2": "PARQUET_VERSION v2, COMPRESSION zstd",
    "duckdb-brotli": "PARQUET_VERSION v2, COMPRESSION brotli",
    "duckdb-lz4-raw": "COMPRESSION lz4_raw",
  })) {
    mkdirSync(name, { recursive: true });
    await connection.run(`COPY (${select}) TO '${name}/input.parquet' (FORMAT parquet, ${options})`);
    vector(name, `DuckDB's types, ${options}`, written, schema, rows);
  }
  connection.closeSync();
}

function write(name, options) {
  mkdirSync(name, { recursive: true });
  const writer = new ByteWriter();
  parquetWrite({ writer, ...options });
  writeFileSync(`${name}/input.parquet`, writer.getBytes());
}

function hyparquet() {
  const written = `hyparquet-writer ${versionOf("hyparquet-writer")}`;
  write("hyparquet-basic", {
    columnData: [
      { name: "i", data: [1, null, -3], type: "INT32", nullable: true },
      { name: "l", data: [2n ** 62n, null, -1n], type: "INT64", nullable: true },
      { name: "d", data: [0.5, null, -0.25], type: "DOUBLE", nullable: true },
      { name: "h", data: [1.5, null, -2], type: "FLOAT16", nullable: true },
      { name: "s", data: ["é", null, ""], type: "STRING", nullable: true },
      { name: "b", data: [true, null, false], type: "BOOLEAN", nullable: true },
      { name: "j", data: [{ a: [1] }, null, "x"], type: "JSON", nullable: true },
      {
        name: "id",
        data: ["f79c3e09-677c-4bbd-a479-3f349cb785e7", null, "00000000-0000-0000-0000-000000000001"],
        type: "UUID",
        nullable: true,
      },
      {
        name: "t",
        data: [new Date("2031-02-27T23:06:40.123Z"), null, new Date(-1)],
        type: "TIMESTAMP",
        nullable: true,
      },
    ],
    rowGroupSize: 2,
  });
  vector(
    "hyparquet-basic",
    "hyparquet-writer's types over two row groups",
    written,
    {
      i: "int32",
      l: "int64",
      d: "float64",
      h: "float32",
      s: "string",
      b: "bool",
      j: "json",
      id: "uuid",
      t: "timestamptz",
    },
    [
      {
        i: 1,
        l: "4611686018427387904",
        d: 0.5,
        h: 1.5,
        s: "é",
        b: true,
        j: '{"a":[1]}',
        id: "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        t: "2031-02-27T23:06:40.123000Z",
      },
      { i: null, l: null, d: null, h: null, s: null, b: null, j: null, id: null, t: null },
      {
        i: -3,
        l: -1,
        d: -0.25,
        h: -2,
        s: "",
        b: false,
        j: '"x"',
        id: "00000000-0000-0000-0000-000000000001",
        t: "1969-12-31T23:59:59.999000Z",
      },
    ],
  );

  /** Levels of one repeated required element are the same in all of these shapes; only the schema says which it is. */
  const threeLevels = [
    { name: "root", num_children: 1 },
    { name: "l", repetition_type: "OPTIONAL", num_children: 1, converted_type: "LIST" },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
    { name: "element", repetition_type: "REQUIRED", type: "INT32" },
  ];
  const lists = [[1, 2], [], [3], null];
  write("lists-of-2-levels", {
    schema: threeLevels,
    columnData: [{ name: "l", data: lists, offsetIndex: false }],
    codec: "UNCOMPRESSED",
  });
  reshape("lists-of-2-levels", (metadata) => {
    metadata.schema.splice(2, 2, { name: "array", repetition_type: "REPEATED", type: "INT32" });
    metadata.row_groups[0].columns[0].meta_data.path_in_schema = ["l", "array"];
  });
  vector(
    "lists-of-2-levels",
    "a list whose repeated field is the element itself, as old writers make it",
    `${written}, its footer rewritten by make.mjs`,
    { l: "list<int32>" },
    lists.map((l) => ({ l })),
  );

  const filled = [[1, 2], [], [3]];
  const required = threeLevels.with(1, { ...threeLevels[1], repetition_type: "REQUIRED" });
  write("repeated-without-list", {
    schema: required,
    columnData: [{ name: "l", data: filled, offsetIndex: false }],
    codec: "UNCOMPRESSED",
  });
  reshape("repeated-without-list", (metadata) => {
    metadata.schema.splice(1, 3, { name: "l", repetition_type: "REPEATED", type: "INT32" });
    metadata.row_groups[0].columns[0].meta_data.path_in_schema = ["l"];
  });
  vector(
    "repeated-without-list",
    "a repeated field that no LIST is around, as protobuf's writers make it: a list that is never null",
    `${written}, its footer rewritten by make.mjs`,
    { l: "list<int32>" },
    filled.map((l) => ({ l })),
  );
}

/** Gives a file another footer over the same pages. */
function reshape(name, change) {
  const bytes = readFileSync(`${name}/input.parquet`);
  const metadata = parquetMetadata(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const footer = bytes.readUInt32LE(bytes.length - 8);
  change(metadata);
  const writer = new ByteWriter();
  writeMetadata(writer, metadata);
  writeFileSync(
    `${name}/input.parquet`,
    Buffer.concat([
      bytes.subarray(0, bytes.length - 8 - footer),
      new Uint8Array(writer.getBuffer()),
      Buffer.from("PAR1"),
    ]),
  );
}

function parquetWasm() {
  const written = `parquet-wasm ${versionOf("parquet-wasm")} (parquet-rs)`;
  const data = tableFromArrays({
    i: Int32Array.of(1, -2, 3),
    l: BigInt64Array.of(1n, -(2n ** 63n), 2n ** 63n - 1n),
    u: BigUint64Array.of(0n, 2n ** 63n, 2n ** 64n - 1n),
    f: Float64Array.of(0.5, Number.NaN, Number.NEGATIVE_INFINITY),
    s: ["a", "b", "a"],
  });
  const rows = [
    { i: 1, l: 1, u: 0, f: 0.5, s: "a" },
    { i: -2, l: "-9223372036854775808", u: "9223372036854775808", f: "NaN", s: "b" },
    { i: 3, l: "9223372036854775807", u: "18446744073709551615", f: "-Infinity", s: "a" },
  ];
  const schema = { i: "int32", l: "int64", u: "uint64", f: "float64", s: "string" };
  for (const [name, version, compression] of [
    ["parquet-wasm-v1", WriterVersion.V1, Compression.SNAPPY],
    ["parquet-wasm-v2", WriterVersion.V2, Compression.BROTLI],
    ["parquet-wasm-gzip", WriterVersion.V1, Compression.GZIP],
  ]) {
    const properties = new WriterPropertiesBuilder().setWriterVersion(version).setCompression(compression).build();
    mkdirSync(name, { recursive: true });
    const table = Table.fromIPCStream(tableToIPC(data, "stream"));
    writeFileSync(`${name}/input.parquet`, writeParquet(table, properties));
    vector(name, "numbers at their ends, NaN, and a dictionary", written, schema, rows);
  }
}

await duckdb();
hyparquet();
parquetWasm();
