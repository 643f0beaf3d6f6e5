/** Entries as appends make them, of which one in ten has a data file: for lakes too large to be appended to row by row. */

import { createHash } from "node:crypto";

const FIELDS = ["id", "user", "at", "kind", "value"].map((name, i) => {
  return { id: i + 1, name, type: { kind: "int64" }, nullable: true };
});

/** Makes the table `t`, of five columns of integers. */
export async function commitTable(catalog) {
  const create = { name: "t", folder: "t", partitionBy: [], orderBy: [] };
  await catalog.commit({
    operations: [{ op: "schema", table: "t", version: 1, schema: { fields: FIELDS }, lastFieldId: 5, create }],
  });
}

/** Appends `from` to `from + count`, in one entry. */
export function draftOf(from, count) {
  return { operations: Array.from({ length: count }, (_, i) => append(from + i)) };
}

function append(n) {
  const bound = BigInt(n) * 1000n;
  const columns = FIELDS.map(({ id }) => ({
    fieldId: id,
    valueCount: 1000,
    nullCount: 0,
    hasNaN: false,
    min: bound,
    max: bound + 999n,
    minExact: true,
    maxExact: true,
    storedBytes: 4000,
  }));
  const sha256 = createHash("sha256").update(String(n)).digest("hex");
  const file = {
    key: `t/data/0-${sha256.slice(0, 36)}.parquet`,
    bytes: 20_000,
    rows: 1000,
    sha256,
    base: 0,
    schemaVersion: 1,
    partition: [],
    columns,
  };
  const files = n % 10 === 0 ? [file] : [];
  return {
    op: "append",
    table: "t",
    batch: `batch-${n}`,
    hash: `rows:${sha256}`,
    rows: files.length * 1000,
    schemaVersion: 1,
    files,
    rejects: [],
  };
}
