/** JSON and NDJSON bytes → the schema that takes them. */

import { type Observation, type ObservedFields, ObservedRows } from "./infer.js";
import { JsonCursor } from "./json-cursor.js";
import { createSplitter } from "./json-parser.js";
import { readRow } from "./json-rows.js";
import type { JsonSplitter, NdjsonSplitter } from "./json-splitter.js";
import { ESCAPED_STRING, FALSE, JsonTape, LIST, NUMBER, OBJECT, STRING, TRUE } from "./json-tape.js";
import type { Inferrer, InferrerOptions, TextFormat, TextPart } from "./parser.js";
import { RowFault } from "./row-batches.js";
import type { Schema } from "./schema.js";
import { TemporalReader } from "./temporal.js";
import { Utf8Reader } from "./text-encoding.js";

/** Fields of a member that is overridden by a later one of the same key. */
const OVERRIDDEN = -1;

export interface JsonInferrerOptions extends InferrerOptions {
  readonly format: Exclude<TextFormat, "csv">;
  readonly part?: TextPart;
}

/**
 * An inferrer of NDJSON and JSON, by the table in `infer.ts`. Looks at every value; rows whose form is wrong do not
 * count, nor do values that a later one of the same key overrides.
 */
export function createJsonInferrer(options: JsonInferrerOptions): Inferrer<Uint8Array> {
  return new JsonInferrer(options);
}

class JsonInferrer implements Inferrer<Uint8Array> {
  readonly #rows: ObservedRows;
  readonly #splitter: NdjsonSplitter | JsonSplitter;
  readonly #text: Utf8Reader;
  readonly #cursor = new JsonCursor();
  readonly #tape: JsonTape = new JsonTape(this.#cursor);
  readonly #temporal = new TemporalReader();

  constructor(options: JsonInferrerOptions) {
    this.#rows = new ObservedRows(options);
    const splitter = createSplitter(options, {
      row: (bytes, start, end) => this.#row(bytes, start, end),
      oversized: () => {},
    });
    this.#splitter = splitter;
    this.#text = new Utf8Reader({
      offset: options.part?.offset,
      sink: (utf8) => splitter.push(utf8),
      line: () => splitter.line,
      skipped: (bytes) => splitter.skip(bytes),
    });
  }

  push(input: Uint8Array): void {
    this.#text.push(input);
  }

  schema(): Schema {
    return this.#rows.schema();
  }

  end(): Schema {
    this.#text.end();
    this.#splitter.end();
    return this.schema();
  }

  get rows(): number {
    return this.#rows.rows;
  }

  #row(bytes: Uint8Array, start: number, end: number): void {
    try {
      readRow(this.#cursor, this.#tape, bytes, start, end);
    } catch (fault) {
      if (fault instanceof RowFault) return;
      throw fault;
    }
    if (!this.#match(this.#rows.fields, 0)) return;
    this.#members(this.#rows.fields, 0);
    this.#rows.settle();
  }

  /**
   * Finds the field of each member of the object at `entry`, and marks the key's entry with it.
   * @returns false, with no field added, where two different keys go to the same field
   */
  #match(fields: ObservedFields, entry: number): boolean {
    const tape = this.#tape;
    const { bytes } = this.#cursor;
    const { keys, size } = fields;
    keys.tidy();
    const end = tape.end(entry);
    fields.begin();
    let previous = -1;
    for (let at = entry + 1; at < end; at = tape.after(at + 1)) {
      const start = tape.start(at);
      let spelling = keys.predict(previous, bytes, start);
      if (spelling === -1) spelling = keys.find(previous, bytes, start, tape.end(at));
      if (spelling === -1) {
        const key = this.#cursor.text(start, tape.end(at), tape.kind(at) === ESCAPED_STRING);
        spelling = keys.learn(key, fields.fieldOf(key), bytes, start, tape.end(at));
      }
      previous = spelling;
      const { field } = keys.spelling(spelling);
      const earlier = fields.meet(field, at, spelling);
      if (earlier !== undefined) {
        if (keys.spelling(earlier.spelling).key !== keys.spelling(spelling).key) {
          fields.truncate(size);
          return false;
        }
        tape.mark(earlier.entry, OVERRIDDEN);
      }
      tape.mark(at, field);
    }
    return true;
  }

  /** Notes the members of the object at `entry`, of which the keys were matched. */
  #members(fields: ObservedFields, entry: number): void {
    const tape = this.#tape;
    const end = tape.end(entry);
    for (let at = entry + 1; at < end; at = tape.after(at + 1)) {
      const field = tape.start(at);
      if (field !== OVERRIDDEN) this.#value(fields.value(field), at + 1);
    }
  }

  #value(into: Observation, entry: number): void {
    const tape = this.#tape;
    const cursor = this.#cursor;
    switch (tape.kind(entry)) {
      case TRUE:
      case FALSE:
        into.noteBool();
        break;
      case NUMBER: {
        const profile = into.noteNumber();
        if (!profile) break;
        cursor.number.read(cursor.bytes, tape.start(entry), tape.end(entry));
        profile.addToken(cursor.number);
        break;
      }
      case STRING:
      case ESCAPED_STRING:
        into.noteText(into.asksForInstants && this.#isInstant(entry));
        break;
      case OBJECT:
        if (into.isMap) this.#map(into, entry);
        else this.#object(into, entry);
        break;
      case LIST: {
        const elements = into.isMap ? undefined : into.noteElements(tape.end(entry) === entry + 1);
        if (!elements) break;
        for (let at = entry + 1; at < tape.end(entry); at = tape.after(at)) this.#value(elements, at);
        break;
      }
    }
  }

  #isInstant(entry: number): boolean {
    const start = this.#tape.start(entry);
    const end = this.#tape.end(entry);
    if (this.#tape.kind(entry) === STRING) return this.#temporal.instant(this.#cursor.bytes, start, end);
    const size = this.#cursor.unescapeToScratch(start, end);
    return this.#temporal.instant(this.#cursor.scratch, 0, size);
  }

  #object(into: Observation, entry: number): void {
    const fields = into.noteObject(this.#tape.end(entry) === entry + 1);
    if (!fields) return;
    if (!this.#match(fields, entry)) {
      into.noteCollision();
      return;
    }
    this.#members(fields, entry);
    into.settle();
  }

  #map(into: Observation, entry: number): void {
    const tape = this.#tape;
    const elements = into.noteElements(tape.end(entry) === entry + 1);
    if (!elements) return;
    for (let at = entry + 1; at < tape.end(entry); at = tape.after(at + 1)) this.#value(elements, at + 1);
  }
}
