/** JavaScript rows → record batches. */

import { BatchParser } from "./batch-parser.js";
import { checkRow, jsonText, keysOf, kindOf, memberOf, notAnObject, unwrap } from "./js-values.js";
import { fieldName } from "./json-keys.js";
import { duplicateKey } from "./json-values.js";
import type { Parser, ParserOptions } from "./parser.js";
import { PendingFault, RowBatches, RowFault } from "./row-batches.js";
import { StructValues } from "./row-nested.js";
import type { RowContext } from "./row-values.js";
import { nameKey } from "./schema.js";

export interface RowParserOptions extends ParserOptions {
  /** Rows of the input that come before the first one pushed: rejects are numbered with them. Default 0. */
  readonly rowsBefore?: number;
}

/**
 * A parser of rows.
 *
 * - A row is an object (or a Map with string keys); its keys go to columns as those of JSON do. `undefined` is absent.
 * - `number` and `bigint` fit a numeric type that holds them exactly; fractions are rounded to the nearest float32. An
 *   integer that is not safe (beyond ±(2^53 − 1)) may have been rounded before it came here: in an integer or decimal
 *   column it is a reject `unsafe_integer`. NaN, ±Infinity and −0 are kept in float columns; −0 is 0 in others.
 * - Text fits string columns and, in the forms of {@link createTextAppender}, decimal, date, time, timestamp,
 *   timestamptz, uuid, binary and fixed.
 * - `Date` is an instant: timestamptz. An invalid one is a reject `bad_date`.
 * - `Uint8Array`, `ArrayBuffer` and `DataView` are binary or fixed, arrays and other typed arrays lists, objects and
 *   Maps structs or maps. An object with `toJSON` is what that returns.
 * - json takes anything that JSON can express, bigints as digits.
 * - Functions, symbols, sets and the like are a reject `unsupported_value`, cycles one of `too_deep`.
 */
export function createRowParser(options: RowParserOptions): Parser<readonly unknown[]> {
  return new RowParser(options);
}

/** Stands among the rows for one that its sender has refused: a reject with its own code and reason. */
export class RefusedRow {
  readonly row: unknown;
  readonly code: string;
  /** What is wrong, without the row's values. */
  readonly reason: string;

  constructor(row: unknown, code: string, reason: string) {
    this.row = row;
    this.code = code;
    this.reason = reason;
  }
}

/** Estimate of the input bytes of a value that is not text. */
const VALUE_BYTES = 8;
const MAX_RAW_LENGTH = 64 * 1024;

class RowParser extends BatchParser<readonly unknown[]> {
  readonly #context: RowContext;
  readonly #values: StructValues;
  /** Rows read, whether taken or not. */
  #line: number;

  constructor(options: RowParserOptions) {
    super(new RowBatches(options));
    this.#line = options.rowsBefore ?? 0;
    this.#context = {
      pending: new PendingFault(),
      unknownFields: options.unknownFields,
      onIgnored: (key) => this.batches.ignore(key),
      depth: 0,
      bytes: 0,
      scratch: new Uint8Array(256),
    };
    this.#values = new StructValues(this.batches.root, "", this.#context);
  }

  push(input: readonly unknown[]): void {
    for (const row of input) this.#row(row);
  }

  end(): void {
    this.batches.flush();
  }

  #row(row: unknown): void {
    this.#line++;
    this.#context.depth = 0;
    this.#context.bytes = 0;
    this.#context.pending.clear();
    if (row instanceof RefusedRow) {
      this.batches.refuse(new RowFault("form", row.code, row.reason), this.#line, rawRow(row.row));
      return;
    }
    try {
      const value = unwrap(row);
      const kind = kindOf(value);
      if (kind !== "object" && kind !== "map") throw notAnObject();
      this.#values.appendMembers(value, kind);
      this.#context.pending.raise();
    } catch (fault) {
      if (!(fault instanceof RowFault)) throw fault;
      this.batches.refuse(settled(fault, row), this.#line, rawRow(row));
      return;
    }
    this.batches.accept(this.#context.bytes + VALUE_BYTES * this.batches.columns.length);
  }
}

/** What is wrong with a row under any schema comes first, so that nobody looks for another schema because of it. */
function settled(fault: RowFault, row: unknown): RowFault {
  if (fault.about === "form") return fault;
  try {
    checkRow(row);
    checkKeys(row);
  } catch (other) {
    if (other instanceof RowFault) return other;
    throw other;
  }
  return fault;
}

function checkKeys(row: unknown): void {
  const value = unwrap(row);
  const seen = new Map<string, string>();
  const kind = kindOf(value);
  for (const key of keysOf(value, kind)) {
    if (memberOf(value, kind, key) === undefined) continue;
    const other = seen.get(nameKey(fieldName(key)));
    if (other !== undefined) throw duplicateKey("form", "", other, key);
    seen.set(nameKey(fieldName(key)), key);
  }
}

/** The row as text for its reject, as far as it has one. */
function rawRow(row: unknown): string {
  try {
    return jsonText(row).slice(0, MAX_RAW_LENGTH);
  } catch (fault) {
    if (fault instanceof RowFault) return "";
    throw fault;
  }
}
