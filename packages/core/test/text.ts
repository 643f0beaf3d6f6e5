/** Parsing and inferring in one call, for tests. */

import type { RecordBatch } from "../src/columns.js";
import type { Reject } from "../src/errors.js";
import { createRowInferrer } from "../src/infer-rows.js";
import type { Inferrer, InferrerOptions, Parser, ParserOptions, TextFormat } from "../src/parser.js";
import { createRowParser } from "../src/rows.js";
import { assignFieldIds, formatType, type Schema, type SchemaInput, toSchema } from "../src/schema.js";
import { createTextInferrer, createTextParser } from "../src/text-parser.js";
import { batchRows } from "../src/values.js";

export interface Parsed {
  readonly batches: readonly RecordBatch[];
  /** All rows in `json` values, but in `exact` values where asked for. */
  readonly rows: readonly Record<string, unknown>[];
  readonly rejects: readonly Reject[];
  readonly ignored: Readonly<Record<string, number>>;
}

export interface ParseSettings extends Partial<Omit<ParserOptions, "schema">> {
  readonly format?: TextFormat;
  readonly values?: "exact" | "json";
  /** Positions where the input is cut into chunks. */
  readonly cuts?: readonly number[];
}

const encoder = new TextEncoder();

export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Ids assigned. */
export function schemaOf(input: SchemaInput): Schema {
  return assignFieldIds(toSchema(input));
}

export function parse(input: string | Uint8Array, schema: SchemaInput, settings: ParseSettings = {}): Parsed {
  const { format = "ndjson", cuts = [] } = settings;
  const parser = createTextParser({ ...parserOptions(schema, settings), format });
  const bytes = typeof input === "string" ? utf8(input) : input;
  let at = 0;
  for (const cut of [...cuts, bytes.length]) {
    // A chunk's memory may be used again by the caller, so that nothing of it may be kept.
    const chunk = bytes.slice(at, cut);
    parser.push(chunk);
    chunk.fill(0xff);
    at = cut;
  }
  return collect(parser, settings);
}

export function parseRows(rows: readonly unknown[], schema: SchemaInput, settings: ParseSettings = {}): Parsed {
  const parser = createRowParser(parserOptions(schema, settings));
  parser.push(rows);
  return collect(parser, settings);
}

function parserOptions(schema: SchemaInput, settings: ParseSettings): ParserOptions {
  const { format: _, values: __, cuts: ___, ...options } = settings;
  return { unknownFields: "reject", valueMisfits: "reject", ...options, schema: schemaOf(schema) };
}

function collect(parser: Parser<never>, settings: ParseSettings): Parsed {
  parser.end();
  const batches: RecordBatch[] = [];
  for (let batch = parser.take(); batch; batch = parser.take()) batches.push(batch);
  const rows = batches.flatMap((batch) => batchRows(batch, settings.values ?? "json") as Record<string, unknown>[]);
  return { batches, rows, rejects: parser.rejects, ignored: Object.fromEntries(parser.ignoredFields) };
}

export interface InferSettings extends InferrerOptions {
  readonly format?: TextFormat;
}

export function inferSchema(input: string | Uint8Array, settings: InferSettings = {}): Schema {
  const { format = "ndjson", ...options } = settings;
  const inferrer = createTextInferrer({ ...options, format });
  return pushed(inferrer, typeof input === "string" ? utf8(input) : input);
}

export function inferRows(rows: readonly unknown[], options: InferrerOptions = {}): Schema {
  return pushed(createRowInferrer(options), rows);
}

function pushed<T>(inferrer: Inferrer<T>, input: T): Schema {
  inferrer.push(input);
  return inferrer.end();
}

/** A schema as an object of type texts; a `!` follows the name of a field that may not be null. */
export function types(schema: Schema): Record<string, string> {
  const entries = schema.fields.map((f): [string, string] => [f.nullable ? f.name : `${f.name}!`, formatType(f.type)]);
  return Object.fromEntries(entries);
}
