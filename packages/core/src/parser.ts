/** What all parsers have in common: input in, record batches out, rows that cannot be taken kept with their reason. */

import type { RecordBatch } from "./columns.js";
import type { Reject } from "./errors.js";
import type { Schema } from "./schema.js";

export type TextFormat = "ndjson" | "json" | "csv";

export interface CsvOptions {
  /** One character. Default: detected among `,` `;` tab and `|` from the first lines. */
  readonly delimiter?: string;
  /** One character, `""` for none. Default `"`. */
  readonly quote?: string;
  /** Character that escapes a quote inside quotes. Default: the quote itself, doubled. */
  readonly escape?: string;
  /** True (default): the first record names the columns. False: `column_1`, …. Or the names. */
  readonly header?: boolean | readonly string[];
  /** Unquoted cells that mean null. Default `[""]`. */
  readonly nullValues?: readonly string[];
  /** `error` (default): a record of another length is a reject. `pad`: short records are filled with nulls. */
  readonly ragged?: "error" | "pad";
  /** Default: UTF-8, or what a byte-order mark says. Bytes that are not valid in it are an error, never U+FFFD. */
  readonly encoding?: "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";
  /** Strip spaces and tabs around unquoted cells. Default false. */
  readonly trim?: boolean;
}

export interface ParserOptions {
  /** The schema to fill, ids assigned. Unknown-typed fields take only null (or `{}`, `[]`). */
  readonly schema: Schema;
  /** A key that the schema does not have: stop with {@link SchemaMisfit}, reject the row (`unknown_field`), or drop and count it. */
  readonly unknownFields: "misfit" | "reject" | "ignore";
  /** A value that does not fit its column: stop with {@link SchemaMisfit}, or reject the row (`type_mismatch`). */
  readonly valueMisfits: "misfit" | "reject";
  /** Rows per record batch. Default 100,000, fewer with more than 167 columns: at most 16 Mi values. */
  readonly batchRows?: number;
  /** Input bytes (or an estimate of them) per record batch. Default 32 MiB. */
  readonly batchBytes?: number;
  /** More rejects than this throw `InvalidInputError` `too_many_rejects`. Default 10,000. */
  readonly maxRejects?: number;
}

export interface TextParserOptions extends ParserOptions {
  readonly format: TextFormat;
  readonly csv?: CsvOptions;
  /** The input is a part of its text, of those that are in UTF-8: NDJSON, CSV whose options give delimiter and header, JSON. */
  readonly part?: TextPart;
}

/**
 * Where a part of a text begins: at a row, of which the line and the byte offset are those in the whole text. A later part
 * has no byte-order mark, and NDJSON is no JSON array there even if its first row is one.
 */
export interface TextPart {
  /** 1-based. */
  readonly line: number;
  /** 0 for the first part. */
  readonly offset: number;
  /** Of JSON, and of all its parts: what the first row is, or stands behind. Whether an array is closed is not asked. */
  readonly json?: JsonPlace;
}

/** The front of the text, or a row behind another one of the same array, or an object behind another one. */
export type JsonPlace = "front" | "array" | "objects";

/**
 * A push parser. `I` is `Uint8Array` for text (chunks of any split; a chunk may be reused by the caller after `push`
 * returns) and `readonly unknown[]` for rows.
 *
 * Errors that concern the whole input (cut off, not UTF-8, not JSON at all, no header) throw `InvalidInputError` with
 * line and byte offset; errors of one row become a reject, and the rows around it are taken.
 */
export interface Parser<I> {
  push(input: I): void;
  /** No more input: the last batch becomes available. */
  end(): void;
  /** The next finished batch, or undefined when more input is needed. */
  take(): RecordBatch | undefined;
  /** Rows taken so far. */
  readonly rows: number;
  readonly rejects: readonly Reject[];
  /** Dropped values by key, with `unknownFields: "ignore"`. */
  readonly ignoredFields: ReadonlyMap<string, number>;
}

/**
 * Looks at every value and tells the schema that takes them all. Same input in any order of rows, any chunking: same
 * schema (but for the order and the spelling of new fields, which are those of first appearance). Rows that a parser
 * would reject for their form (bad JSON, ragged) do not count.
 */
export interface Inferrer<I> {
  push(input: I): void;
  /**
   * The schema of the complete rows seen so far: base evolved where the widening table allows; new fields have id 0.
   * A row or record that is cut at the end of the input so far does not count and is no error: this is how a sample
   * taken from the front of a long input is judged. May be called before or without `end`.
   */
  schema(): Schema;
  /** No more input: the schema of all of it. Throws what a parser would throw for input that is broken as a whole. */
  end(): Schema;
  readonly rows: number;
}

export interface InferrerOptions {
  /** The table's schema. Absent for a table's first batch. */
  readonly base?: Schema;
  /** Bounds of the integers already stored, by field id: decides int → float64. A missing entry refuses it. */
  readonly integerBounds?: ReadonlyMap<number, { readonly min: bigint; readonly max: bigint }>;
  /** Text that is always strict ISO 8601 with a zone becomes timestamptz. Default true. */
  readonly inferTimestamps?: boolean;
  /** Different keys that objects of one column may have and still be a struct; with more they are json. Default 1,000. */
  readonly maxStructKeys?: number;
  /** More columns than this throw `InvalidInputError` `too_many_fields`. Default 10,000. */
  readonly maxColumns?: number;
}

/** Thrown by a parser that may not decide by itself: the input needs another schema. Infer over all of it, then parse again. */
export class SchemaMisfit extends Error {
  override readonly name = "SchemaMisfit";
  /** 1-based line or row. */
  readonly line: number;

  constructor(line: number, reason: string) {
    super(`line ${line}: ${reason}`);
    this.line = line;
  }
}
