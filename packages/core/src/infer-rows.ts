/** JavaScript rows → the schema that takes them. */

import { type Observation, type ObservedFields, ObservedRows } from "./infer.js";
import { checkRow, hasNames, type JsKind, keysOf, kindOf, memberOf, unwrap } from "./js-values.js";
import type { Inferrer, InferrerOptions } from "./parser.js";
import { RowFault } from "./row-batches.js";
import { RefusedRow } from "./rows.js";
import type { Schema } from "./schema.js";
import { TemporalReader } from "./temporal.js";
import { encodeUtf8 } from "./utf8.js";

/** Longest ISO 8601 text with a zone: `2031-02-03T04:05:06.123456000+05:30`. */
const MAX_INSTANT_LENGTH = 35;

/**
 * An inferrer of rows, by the table in `infer.ts`. Looks at every value; rows that are rejects under any schema do not
 * count. A number that is an integer counts as one, whatever its form in the program.
 */
export function createRowInferrer(options: InferrerOptions): Inferrer<readonly unknown[]> {
  return new RowInferrer(options);
}

class RowInferrer implements Inferrer<readonly unknown[]> {
  readonly #rows: ObservedRows;
  readonly #temporal = new TemporalReader();
  readonly #scratch = new Uint8Array(MAX_INSTANT_LENGTH * 3);

  constructor(options: InferrerOptions) {
    this.#rows = new ObservedRows(options);
  }

  push(input: readonly unknown[]): void {
    for (const row of input) this.#row(row);
  }

  schema(): Schema {
    return this.#rows.schema();
  }

  end(): Schema {
    return this.schema();
  }

  get rows(): number {
    return this.#rows.rows;
  }

  #row(row: unknown): void {
    if (row instanceof RefusedRow) return;
    try {
      checkRow(row);
    } catch (fault) {
      if (fault instanceof RowFault) return;
      throw fault;
    }
    const value = unwrap(row);
    if (!hasNames(value, kindOf(value))) return;
    if (this.#members(this.#rows.fields, value, kindOf(value))) this.#rows.settle();
  }

  /** Notes the members of an object; false, with nothing noted, where two keys go to the same field. */
  #members(fields: ObservedFields, value: unknown, kind: JsKind): boolean {
    const { size } = fields;
    const keys = keysOf(value, kind);
    fields.begin();
    for (const key of keys) {
      if (memberOf(value, kind, key) === undefined || !fields.meet(fields.fieldOf(key), 0, 0)) continue;
      fields.truncate(size);
      return false;
    }
    for (const key of keys) {
      const member = memberOf(value, kind, key);
      if (member !== undefined) this.#value(fields.value(fields.fieldOf(key)), member);
    }
    return true;
  }

  #value(into: Observation, member: unknown): void {
    const value = unwrap(member);
    const kind = kindOf(value);
    switch (kind) {
      case "bool":
        into.noteBool();
        break;
      case "number":
        into.noteNumber()?.addNumber(value as number);
        break;
      case "bigint":
        into.noteNumber()?.addBigInt(value as bigint);
        break;
      case "text":
        into.noteText(into.asksForInstants && this.#isInstant(value as string));
        break;
      case "date":
        into.noteDate();
        break;
      case "binary":
        into.noteBinary();
        break;
      case "list": {
        const elements = into.isMap ? undefined : into.noteElements((value as ArrayLike<unknown>).length === 0);
        if (elements) for (const element of value as Iterable<unknown>) this.#value(elements, element);
        break;
      }
      case "object":
      case "map":
        this.#object(into, value, kind);
        break;
    }
  }

  #object(into: Observation, value: unknown, kind: JsKind): void {
    if (into.isMap) {
      const members = Array.from(
        kind === "map" ? (value as Map<unknown, unknown>).values() : Object.values(value as object),
      );
      const elements = into.noteElements(members.length === 0);
      if (elements) for (const member of members) this.#value(elements, member);
      return;
    }
    // Other keys fit map columns only: such a value is a reject here.
    if (!hasNames(value, kind)) return;
    const empty = keysOf(value, kind).every((key) => memberOf(value, kind, key) === undefined);
    const fields = into.noteObject(empty);
    if (!fields) return;
    if (this.#members(fields, value, kind)) into.settle();
    else into.noteCollision();
  }

  #isInstant(text: string): boolean {
    if (text.length < 20 || text.length > MAX_INSTANT_LENGTH) return false;
    const end = encodeUtf8(text, this.#scratch, 0);
    return this.#temporal.instant(this.#scratch, 0, end);
  }
}
