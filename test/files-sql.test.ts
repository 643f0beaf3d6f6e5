/**
 * Every vector through a lake: what `eider files --sql` prints gives plain DuckDB the rows that `lake.sql` gives, and
 * both are the vector's own, whether its inputs were put into files or kept hot and folded.
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

const KINDS = [
  ["files", FILES],
  ["hot", {}],
] as const;

describe.each(loadVectors().map((vector) => [vector.name, vector] as const))("%s", (name, vector) => {
  it.each(KINDS)(`as %s: ${vector.about}`, async (kind, options) => {
    await using lake = await Lake.open(join(folder, `${name.replace("/", "-")}-${kind}`), options);
    const table = lake.table("t", vector.declared ? { schema: vector.declared } : {});
    for (const { bytes, format, csv, rejects } of vector.inputs) {
      const result = await table.append(bytes, { format, ...(csv && { csv }), onReject: "quarantine" });
      expect(result.rowsRejected).toBe(rejects.length);
    }
    const rows = async (at?: number): Promise<unknown[]> =>
      (await lake.with(at === undefined ? {} : { at }).sql("SELECT * FROM t")).map(toJson);
    const [before] = await lake.sql<{ hot: bigint; at: bigint }>(
      "SELECT hot_batches AS hot, (SELECT max(snapshot) FROM eider.snapshots) AS at FROM eider.tables",
    );
    if (kind === "files") expect(before!.hot).toBe(0n);
    else if (vector.rows.length > 0) expect(before!.hot).toBeGreaterThan(0n);
    expect(await rows()).toEqual(vector.rows);
    const { schema } = await table.describe();
    const instance = await DuckDBInstance.create(":memory:");
    const connection = await instance.connect();
    try {
      // Folds what is hot.
      expect(await duckRows(connection, await table.filesSql(), schema)).toEqual(vector.rows);
    } finally {
      connection.closeSync();
      instance.closeSync();
    }
    expect(await lake.sql("SELECT hot_batches AS hot FROM eider.tables")).toEqual([{ hot: 0n }]);
    expect(await rows()).toEqual(vector.rows);
    expect(await rows(Number(before!.at))).toEqual(vector.rows);
  });
});
