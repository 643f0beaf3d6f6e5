/** Protobuf messages in a lake: bytes → columns → Arrow → Parquet → SQL, and through hyparquet, a second reader. */

import { join } from "node:path";
import { createProtobufParser, type ProtobufField, protobufSchema, toArrowTable } from "@eider/core";
import type { Table } from "apache-arrow";
import { Lake } from "eider";
import protobufjs from "protobufjs";
import { expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import { readParquet } from "./support/hyparquet.js";

const PROTO = `syntax = "proto3";
  message M { int64 a = 1; uint64 b = 2; sfixed64 c = 3; map<uint64, string> d = 4; map<string, string> e = 5; }`;

const FIELDS: readonly ProtobufField[] = [
  { name: "a", number: 1, type: "int64" },
  { name: "b", number: 2, type: "uint64" },
  { name: "c", number: 3, type: "sfixed64" },
  { name: "d", number: 4, type: "string", mapKey: "uint64" },
  { name: "e", number: 5, type: "string", mapKey: "string" },
];

async function arrowOf(payloads: readonly Uint8Array[]): Promise<Table> {
  const parser = createProtobufParser({ fields: FIELDS, maxRejects: 0 });
  parser.push(payloads);
  parser.end();
  return toArrowTable([parser.take()!], protobufSchema(FIELDS));
}

it("D13, D80: 64-bit integers and the key __proto__ are in Arrow and in SQL as they were sent", async () => {
  const M = protobufjs.parse(PROTO).root.lookupType("M");
  const halves = (value: bigint): object => ({
    low: Number(BigInt.asIntN(32, value)),
    high: Number(BigInt.asIntN(32, value >> 32n)),
  });
  const payload = M.encode({
    a: halves(1122334455667788991n),
    b: halves(18446744073709551615n),
    c: halves(-1122334455667788991n),
    d: { "9007199254740993": "exact" },
    e: Object.fromEntries([["__proto__", "data"]]),
  }).finish();

  const arrow = await arrowOf([payload, new Uint8Array(0)]);
  expect(arrow.schema.fields.slice(0, 4).map(({ type }) => String(type))).toEqual([
    "Int64",
    "Uint64",
    "Int64",
    expect.stringContaining("Uint64"),
  ]);
  expect(["a", "b", "c"].map((name) => arrow.getChild(name)!.get(0))).toEqual([
    1122334455667788991n,
    18446744073709551615n,
    -1122334455667788991n,
  ]);

  const where = temporaryFolder();
  const lake = await Lake.open(where, FILES);
  const table = lake.table("m");
  await table.append(arrow);
  const text = lake.sql(
    `SELECT a::VARCHAR AS a, b::VARCHAR AS b, c::VARCHAR AS c, d::VARCHAR AS d, e['__proto__'] AS e FROM m ORDER BY b DESC`,
  );
  expect(await text).toEqual([
    {
      a: "1122334455667788991",
      b: "18446744073709551615",
      c: "-1122334455667788991",
      d: "{9007199254740993=exact}",
      e: "data",
    },
    { a: "0", b: "0", c: "0", d: "{}", e: null },
  ]);
  expect(await lake.sql("SELECT count(*) AS n FROM m WHERE d[9007199254740993::UBIGINT] = 'exact'")).toEqual([
    { n: 1n },
  ]);
  const [file] = await table.files();
  expect((await readParquet(join(where, file!.key)))[0]).toMatchObject({
    a: 1122334455667788991n,
    b: 18446744073709551615n,
    c: -1122334455667788991n,
  });
  await lake.close();
});
