/**
 * Every vector through a lake: what `eider files --sql` prints gives plain DuckDB the rows that `lake.sql` gives, and
 * both are the vector's own.
 */

import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Lake } from "eider";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import { duckRows, loadVectors } from "./vectors.js";

const folder = temporaryFolder();

/** A value as `lake.sql` returns it, in the form of `rows.json`. */
function toJson(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Map) {
    const pairs = [...value].map(([key, item]) => [toJson(key), toJson(item)] as const);
    return [...value.keys()].every((key) => typeof key === "string") ? Object.fromEntries(pairs) : pairs;
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item)]));
  }
  return value;
}

describe.each(loadVectors().map((vector) => [vector.name, vector] as const))("%s", (name, vector) => {
  it(vector.about, async () => {
    await using lake = await Lake.open(join(folder, name.replace("/", "-")), FILES);
    const table = lake.table("t", vector.declared ? { schema: vector.declared } : {});
    for (const { bytes, format, csv, rejects } of vector.inputs) {
      const result = await table.append(bytes, { format, ...(csv && { csv }), onReject: "quarantine" });
      expect(result.rowsRejected).toBe(rejects.length);
    }
    const { schema } = await table.describe();
    const instance = await DuckDBInstance.create(":memory:");
    const connection = await instance.connect();
    try {
      expect(await duckRows(connection, await table.filesSql(), schema)).toEqual(vector.rows);
    } finally {
      connection.closeSync();
      instance.closeSync();
    }
    expect((await lake.sql("SELECT * FROM t")).map(toJson)).toEqual(vector.rows);
  });
});
