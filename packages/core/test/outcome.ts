/** What parsers make of their input, to compare them. */

import { expect } from "vitest";
import type { Column, RecordBatch } from "../src/columns.js";
import { InvalidInputError, type Reject } from "../src/errors.js";
import { ParquetEncoder } from "../src/parquet-encoder.js";
import { type Parser, SchemaMisfit, type TextParserOptions } from "../src/parser.js";
import { formatType, type Schema, storedSchema } from "../src/schema.js";
import { createTextParser } from "../src/text-parser.js";

/** All that a parser makes of its input. */
export interface Outcome {
  readonly batches: readonly RecordBatch[];
  readonly rejects: readonly Reject[];
  readonly ignored: Readonly<Record<string, number>>;
  readonly rows: number;
  readonly error: string | undefined;
}

function outcome(parser: Parser<Uint8Array>, input: Uint8Array, cuts: readonly number[] = []): Outcome {
  const batches: RecordBatch[] = [];
  let error: string | undefined;
  try {
    let at = 0;
    for (const cut of [...cuts, input.length]) {
      const chunk = input.slice(at, cut);
      parser.push(chunk);
      chunk.fill(0xff);
      for (let batch = parser.take(); batch; batch = parser.take()) batches.push(batch);
      at = cut;
    }
    parser.end();
  } catch (thrown) {
    if (!(thrown instanceof SchemaMisfit || thrown instanceof InvalidInputError)) throw thrown;
    error = `${thrown.name}: ${thrown.message}`;
  }
  for (let batch = parser.take(); batch; batch = parser.take()) batches.push(batch);
  const ignored = Object.fromEntries([...parser.ignoredFields].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { batches, rejects: parser.rejects, ignored, rows: parser.rows, error };
}

/** The pages of each batch, encoded from where the parser has put it. */
function lentPages(input: Uint8Array, options: TextParserOptions, cuts: readonly number[]): string[] {
  const lent: string[] = [];
  const parser = createTextParser(options, (batch) => lent.push(...pages([batch], options.schema)));
  if (outcome(parser, input, cuts).batches.length > 0) throw new Error("a batch that was lent was given once more");
  return lent;
}

function pages(batches: readonly RecordBatch[], schema: Schema): string[] {
  const stored = storedSchema(schema);
  if (stored.fields.length === 0) return batches.map(({ length }) => `${length} rows`);
  const encoder = new ParquetEncoder(stored);
  return batches.flatMap((batch) =>
    encoder.encodeRowGroup(batch).chunks.map(({ parts, nullCount, valueCount }) => {
      return `${nullCount} of ${valueCount} are null: ${Buffer.concat(parts).toString("hex")}`;
    }),
  );
}

/** An outcome as text that says all of it, to the bytes. */
function inWords({ batches, ...rest }: Outcome): string[] {
  const columnWords = ({ type, validity, values, offsets, children, ...counts }: Column): unknown => [
    formatType(type),
    counts,
    validity && hex(validity),
    values && values.constructor.name + hex(values),
    offsets && hex(offsets),
    children.map(columnWords),
  ];
  return [
    JSON.stringify(rest),
    ...batches.map(({ schema, length }) => `${length} rows of ${formatType({ kind: "struct", ...schema })}`),
    ...batches.flatMap(({ columns }) => columns.map((column) => JSON.stringify(columnWords(column)))),
  ];
}

function hex({ buffer, byteOffset, byteLength }: ArrayBufferView): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
}

/** A column of each type that has no others within. */
export const PLAIN_TYPES = {
  b: "bool",
  i8: "int8",
  i16: "int16",
  i32: "int32",
  i64: "int64",
  u8: "uint8",
  u16: "uint16",
  u32: "uint32",
  u64: "uint64",
  f32: "float32",
  f64: "float64",
  d9: "decimal(9,2)",
  d38: "decimal(38,10)",
  d0: "decimal(38,0)",
  s: "string",
  j: "json",
  bin: "binary",
  date: "date",
  time: "time",
  ts: "timestamp",
  tz: "timestamptz",
  id: "uuid",
  fix: "fixed(5)",
} as const;

/**
 * What the reference makes of the input, which the engine's parser must make too: batches, rejects and words; and the
 * same pages from the batches that it lends.
 */
export function comparedOutcome(
  reference: Parser<Uint8Array>,
  engine: Parser<Uint8Array>,
  input: Uint8Array,
  options: TextParserOptions,
  cuts: readonly number[],
): Outcome {
  const expected = outcome(reference, input, cuts);
  expect(inWords(outcome(engine, input, cuts))).toEqual(inWords(expected));
  expect(lentPages(input, options, cuts)).toEqual(pages(expected.batches, options.schema));
  return expected;
}
