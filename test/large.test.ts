/** 1 GB files in flat memory; NDJSON is in killed.test.ts, where its file is at hand. */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { describe, expect, it } from "vitest";
import { runChild } from "./support/child.js";
import { writeEvents } from "./support/events.js";
import { temporaryFolder } from "./support/folder.js";

const GB = 1_000_000_000;
const MIB = 1024 * 1024;

interface Appended {
  readonly status: string;
  readonly rowsAdded: number;
  readonly peak: number;
}

async function append(folder: string, file: string): Promise<Appended> {
  const child = await runChild("append-memory", { lake: join(folder, "lake"), table: "t", file, batchId: "b" });
  expect(child).toMatchObject({ code: 0, stderr: "" });
  return child.lines[0] as Appended;
}

async function ask(folder: string, sql: string): Promise<unknown> {
  const child = await runChild("query", { lake: join(folder, "lake"), sql });
  expect(child).toMatchObject({ code: 0, stderr: "" });
  return (child.lines[0] as { rows: unknown }).rows;
}

describe("1 GB in flat memory", { timeout: 600_000 }, () => {
  it("CSV: at most 250 MiB", async () => {
    const folder = temporaryFolder();
    const file = join(folder, "big.csv");
    const written = await writeEvents(file, "csv", GB);
    const result = await append(folder, file);
    expect(result).toMatchObject({ status: "committed", rowsAdded: written.rows });
    expect(result.peak).toBeLessThan(250 * MIB);
    expect(await ask(folder, "SELECT count(*) AS n, sum(amount) AS s FROM t")).toEqual([
      { n: written.rows, s: Number(written.amount) },
    ]);
  });

  it("Parquet, which DuckDB decodes: at most 400 MiB", async () => {
    const folder = temporaryFolder();
    const file = join(folder, "big.parquet");
    const instance = await DuckDBInstance.create(":memory:", { memory_limit: "2GB" });
    const connection = await instance.connect();
    // Hashes do not compress: 24 million rows of 44 bytes.
    await connection.run(`
      COPY (SELECT i AS id, hash(i) AS h, hash(i + 1)::VARCHAR || '-' AS s, TIMESTAMP '2031-01-01' + to_seconds(i) AS ts
            FROM range(24_000_000) r(i))
      TO '${file.replaceAll("'", "''")}' (FORMAT parquet, COMPRESSION uncompressed)`);
    connection.closeSync();
    instance.closeSync();
    expect((await stat(file)).size).toBeGreaterThan(GB * 0.95);
    const result = await append(folder, file);
    expect(result).toMatchObject({ status: "committed", rowsAdded: 24_000_000 });
    expect(result.peak).toBeLessThan(400 * MIB);
    // Gauss: the sum of 0 … n−1.
    expect(await ask(folder, "SELECT count(*) AS n, sum(id) AS s, count(DISTINCT h) AS d FROM t")).toEqual([
      { n: 24_000_000, s: (24_000_000 * 23_999_999) / 2, d: 24_000_000 },
    ]);
  });
});
