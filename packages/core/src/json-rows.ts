/** Rows as JSON objects → record batches. */

import { badJson, JsonCursor, OPEN_OBJECT } from "./json-cursor.js";
import { fieldName } from "./json-keys.js";
import { createJsonContext, StructValues } from "./json-nested.js";
import { ESCAPED_STRING, JsonTape, LIST, OBJECT } from "./json-tape.js";
import { duplicateKey, type JsonContext } from "./json-values.js";
import type { ParserOptions } from "./parser.js";
import { type RowBatches, RowFault } from "./row-batches.js";
import { nameKey } from "./schema.js";
import { rawText } from "./utf8.js";

/**
 * Reads a row, which must be one object, onto the tape.
 * @throws RowFault where its form is wrong under any schema, but for keys that collide: see {@link checkKeys}
 */
export function readRow(cursor: JsonCursor, tape: JsonTape, bytes: Uint8Array, start: number, end: number): void {
  cursor.reset(bytes, start, end);
  if (cursor.next() !== OPEN_OBJECT) throw cursor.at < end ? badJson("is not a JSON object") : badJson("is empty");
  tape.read();
  checkEnd(cursor);
}

function checkEnd(cursor: JsonCursor): void {
  cursor.next();
  if (cursor.at < cursor.end) throw badJson("has text after the object");
}

/** Throws where two different keys of the row go to the same column. */
function checkKeys(cursor: JsonCursor, tape: JsonTape): void {
  const seen = new Map<string, string>();
  for (let entry = 1; entry < tape.length; entry = tape.after(entry + 1)) {
    const key = keyAt(cursor, tape, entry);
    const other = seen.get(nameKey(fieldName(key)));
    if (other !== undefined && other !== key) throw duplicateKey("form", "", other, key);
    seen.set(nameKey(fieldName(key)), key);
  }
}

function keyAt(cursor: JsonCursor, tape: JsonTape, entry: number): string {
  return cursor.text(tape.start(entry), tape.end(entry), tape.kind(entry) === ESCAPED_STRING);
}

/** The row's bytes with blanks in place of members that a later one of the same key overrides; undefined if there are none. */
function withoutRepeats(cursor: JsonCursor, tape: JsonTape, start: number, end: number): Uint8Array | undefined {
  let copy: Uint8Array | undefined;
  const visit = (entry: number): void => {
    const isObject = tape.kind(entry) === OBJECT;
    if (!isObject && tape.kind(entry) !== LIST) return;
    const last = new Map<string, number>();
    for (let at = entry + 1; at < tape.end(entry); at = tape.after(isObject ? at + 1 : at)) {
      if (isObject) last.set(keyAt(cursor, tape, at), at);
      else visit(at);
    }
    if (!isObject) return;
    for (let at = entry + 1; at < tape.end(entry); ) {
      const next = tape.after(at + 1);
      if (last.get(keyAt(cursor, tape, at)) === at) visit(at + 1);
      else {
        // From the key's opening quote up to that of the next key, comma included.
        copy ??= cursor.bytes.slice(start, end);
        copy.fill(0x20, tape.start(at) - 1 - start, tape.start(next) - 1 - start);
      }
      at = next;
    }
  };
  visit(0);
  return copy;
}

/** Takes rows one after the other. */
export class JsonRows {
  readonly #batches: RowBatches;
  readonly #cursor = new JsonCursor();
  readonly #tape: JsonTape = new JsonTape(this.#cursor);
  readonly #context: JsonContext;
  readonly #values: StructValues;

  constructor(options: ParserOptions, batches: RowBatches) {
    this.#batches = batches;
    this.#context = createJsonContext(this.#cursor, this.#tape, options, (key) => batches.ignore(key));
    this.#values = new StructValues(batches.root, "", this.#context);
  }

  /** Takes the row `[start, end)`, or refuses it. */
  row(bytes: Uint8Array, start: number, end: number, line: number): void {
    try {
      this.#read(bytes, start, end);
    } catch (fault) {
      if (!(fault instanceof RowFault)) throw fault;
      const lasting = this.#settle(fault, bytes, start, end);
      if (lasting) {
        this.#batches.refuse(lasting, line, rawText(bytes, start, end));
        return;
      }
    }
    this.#batches.accept(end - start);
  }

  #read(bytes: Uint8Array, start: number, end: number): void {
    const cursor = this.#cursor;
    cursor.reset(bytes, start, end);
    this.#context.pending.clear();
    if (cursor.next() !== OPEN_OBJECT) throw badJson("is not a JSON object");
    this.#values.readFields();
    checkEnd(cursor);
    this.#context.pending.raise();
  }

  /**
   * What is really wrong with a row that was not taken. What is wrong under any schema comes first, so that nobody
   * looks for another schema because of it. A value that does not fit does not matter if its key is repeated.
   * @returns undefined if the row was taken after all
   */
  #settle(fault: RowFault, bytes: Uint8Array, start: number, end: number): RowFault | undefined {
    this.#batches.rollBack();
    try {
      readRow(this.#cursor, this.#tape, bytes, start, end);
      checkKeys(this.#cursor, this.#tape);
      const single = withoutRepeats(this.#cursor, this.#tape, start, end);
      if (!single) return fault;
      this.#read(single, 0, single.length);
      return undefined;
    } catch (other) {
      if (!(other instanceof RowFault)) throw other;
      return other;
    }
  }
}
