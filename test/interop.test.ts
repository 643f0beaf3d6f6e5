/** Files that other tools wrote, appended to a lake as users would, and Arrow by core alone. See test-vectors/README.md. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { batchRows, formatType, readArrowIPC, type Schema } from "@eider/core";
import { Lake } from "eider";
import { describe, expect, test } from "vitest";
import { FILES } from "./support/files.js";
import { VECTORS } from "./vectors.js";

interface InteropVector {
  readonly about: string;
  readonly inputs: readonly { readonly file: string; readonly format: "parquet" | "arrow" }[];
  /** Present where the input has to be refused; then there are no rows. */
  readonly error?: { readonly name: string; readonly code: string };
}

const TOPIC = join(VECTORS, "interop");
const vectors = readdirSync(TOPIC, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => [name, load<InteropVector>(name, "vector.json")] as const)
  .sort(([a], [b]) => (a < b ? -1 : 1));

function load<T>(name: string, file: string): T {
  return JSON.parse(readFileSync(join(TOPIC, name, file), "utf8")) as T;
}

function typesOf(schema: Schema): Record<string, string> {
  return Object.fromEntries(
    schema.fields.map(({ name, type, nullable }) => [name + (nullable ? "" : "!"), formatType(type)]),
  );
}

test("every tool and both formats are there", () => {
  expect(vectors.length).toBeGreaterThan(45);
});

describe.each(vectors)("%s", (name, { about, inputs, error }) => {
  test(about, async () => {
    await using lake = await Lake.open("memory:", FILES);
    const table = lake.table("t");
    const appended = (async () => {
      for (const { file } of inputs) await table.append({ file: join(TOPIC, name, file) }, { batchId: file });
    })();
    if (error) {
      await expect(appended).rejects.toMatchObject(error);
      return;
    }
    await appended;
    expect(typesOf((await table.describe()).schema)).toEqual(load(name, "schema.json"));
    const order = inputs.length > 1 ? " ORDER BY ALL" : "";
    const rows = await lake.with({ values: "json" }).sql(`SELECT * FROM t${order}`);
    expect(order ? sorted(rows) : rows).toEqual(order ? sorted(load(name, "rows.json")) : load(name, "rows.json"));
  });
});

const arrow = vectors.filter(([, { inputs }]) => inputs.every(({ format }) => format === "arrow"));
test.each(arrow)("%s, read by core alone", async (name, { inputs }) => {
  const rows: unknown[] = [];
  for (const { file } of inputs) {
    const { batches } = await readArrowIPC(readFileSync(join(TOPIC, name, file)));
    for await (const batch of batches) rows.push(...batchRows(batch, "json"));
  }
  expect(rows).toEqual(load(name, "rows.json"));
});

function sorted(rows: readonly unknown[]): string[] {
  return rows.map((row) => JSON.stringify(row)).sort();
}
