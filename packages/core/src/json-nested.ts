/** JSON text → columns, directed by the schema: structs, lists and maps. See `json-values.ts`. */

import type {
  BoolBuilder,
  Builder,
  BytesBuilder,
  DecimalBuilder,
  Float64Builder,
  Int32Builder,
  Int64Builder,
  ListBuilder,
  MapBuilder,
  NumberBuilder,
  StructBuilder,
} from "./builders.js";
import { ByteKeys } from "./byte-keys.js";
import {
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  type JsonCursor,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
} from "./json-cursor.js";
import { fieldName, JsonKeys } from "./json-keys.js";
import { ESCAPED_STRING, JsonTape, STRING } from "./json-tape.js";
import {
  BoolValues,
  childPath,
  DecimalValues,
  duplicateKey,
  FloatValues,
  Int64Values,
  IntegerValues,
  type JsonContext,
  JsonValues,
  misfit,
  missingValue,
  StringValues,
  TextValues,
  UnknownValues,
  unknownField,
  VerbatimValues,
} from "./json-values.js";
import type { ParserOptions } from "./parser.js";
import { PendingFault } from "./row-batches.js";
import { createTextAppender, INTEGER_RANGES, type TextAppender } from "./text-values.js";

/** What the readers of one parser share. */
export function createJsonContext(
  cursor: JsonCursor,
  tape: JsonTape,
  options: Pick<ParserOptions, "unknownFields" | "valueMisfits">,
  onIgnored: (key: string) => void,
): JsonContext {
  const { unknownFields, valueMisfits } = options;
  return { cursor, tape, unknownFields, strict: valueMisfits === "misfit", pending: new PendingFault(), onIgnored };
}

/** A reader for a builder, of any type and depth. */
function createJsonValues(builder: Builder, path: string, context: JsonContext): JsonValues {
  const { type } = builder;
  switch (type.kind) {
    case "bool":
      return new BoolValues(builder as BoolBuilder, path, context);
    case "int8":
    case "int16":
    case "int32":
    case "uint8":
    case "uint16":
    case "uint32":
      return new IntegerValues(builder as NumberBuilder | Int32Builder, INTEGER_RANGES[type.kind], path, context);
    case "int64":
    case "uint64":
      return new Int64Values(builder as Int64Builder, type.kind === "uint64", path, context);
    case "float32":
    case "float64":
      return new FloatValues(builder as NumberBuilder | Float64Builder, type.kind === "float32", path, context);
    case "decimal":
      return new DecimalValues(builder as DecimalBuilder, type.precision, type.scale, path, context);
    case "string":
      return new StringValues(builder as BytesBuilder, path, context);
    case "json":
      return new VerbatimValues(builder as BytesBuilder, path, context);
    case "struct":
      return new StructValues(builder as StructBuilder, path, context);
    case "list":
      return new ListValues(builder as ListBuilder, path, context);
    case "map":
      return new MapValues(builder as MapBuilder, path, context);
    case "unknown":
      return new UnknownValues(builder, path, context);
    default:
      return new TextValues(builder, path, context);
  }
}

class ListValues extends JsonValues {
  readonly #builder: ListBuilder;
  readonly #element: JsonValues;

  constructor(builder: ListBuilder, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#element = createJsonValues(builder.element, `${path}[]`, context);
  }

  protected override take(c: number): boolean {
    if (c !== OPEN_LIST) return false;
    const { cursor } = this;
    cursor.open();
    if (cursor.next() !== CLOSE_LIST) {
      for (;;) {
        this.#element.read();
        const next = cursor.next();
        if (next === CLOSE_LIST) break;
        if (next !== COMMA) throw cursor.expected("a comma in an array");
        cursor.at++;
        cursor.next();
      }
    }
    cursor.close();
    this.#builder.append();
    return true;
  }
}

/** struct, and the row itself. */
export class StructValues extends JsonValues {
  readonly #builder: StructBuilder;
  readonly #fields: readonly JsonValues[];
  readonly #keys = new JsonKeys();
  /** Whether this is the row itself. */
  readonly #top: boolean;
  /** By field: the object in which it was last filled, and by which spelling. */
  readonly #filledIn: Int32Array;
  readonly #filledBy: Int32Array;
  /** Number of the object that is being read. */
  #object = 0;

  constructor(builder: StructBuilder, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#top = path === "";
    const { fields } = builder.type as { readonly fields: readonly { readonly name: string }[] };
    this.#fields = fields.map(({ name }, i) => {
      this.#keys.add(name);
      return createJsonValues(builder.children[i]!, childPath(path, name), context);
    });
    this.#filledIn = new Int32Array(fields.length);
    this.#filledBy = new Int32Array(fields.length);
  }

  protected override take(c: number): boolean {
    if (c !== OPEN_OBJECT) return false;
    this.readFields();
    this.#builder.append();
    return true;
  }

  /** Takes the object at the cursor into the children; `append` of the struct itself is left to the caller. */
  readFields(): void {
    const { cursor } = this;
    const { bytes } = cursor;
    const keys = this.#keys;
    keys.tidy();
    const object = (this.#object + 1) | 0;
    this.#object = object;
    let filled = 0;
    let previous = -1;
    cursor.open();
    let c = cursor.next();
    if (c !== CLOSE_OBJECT) {
      for (;;) {
        if (c !== QUOTE) throw cursor.expected("a key in quotes");
        let spelling = keys.predict(previous, bytes, cursor.at + 1);
        if (spelling !== -1) cursor.at += 1 + keys.width(spelling);
        else spelling = this.#find(previous);
        c = bytes[cursor.at]!;
        if (c !== COLON && cursor.next() !== COLON) throw cursor.expected("a colon after a key");
        cursor.at++;
        if (bytes[cursor.at]! <= 0x20) cursor.next();
        if (spelling !== -1) {
          const { field } = keys.spelling(spelling);
          if (this.#filledIn[field] !== object) {
            this.#filledIn[field] = object;
            filled++;
          } else this.#refill(field, spelling);
          this.#filledBy[field] = spelling;
          previous = spelling;
          this.#fields[field]!.read();
        } else this.context.tape.read();
        c = bytes[cursor.at]!;
        if (c <= 0x20) c = cursor.next();
        if (c === CLOSE_OBJECT) break;
        if (c !== COMMA) throw cursor.expected("a comma in an object");
        c = bytes[++cursor.at]!;
        if (c !== QUOTE) c = cursor.next();
      }
    }
    cursor.close();
    if (filled === this.#fields.length) return;
    const missing = this.#builder.fill();
    if (missing === -1) return;
    this.context.pending.note(missingValue(childPath(this.path, this.#keys.name(missing))));
  }

  /** The spelling of a key that was not predicted; -1 for one that the schema lacks and whose value is to be dropped. */
  #find(previous: number): number {
    const { cursor, context } = this;
    const keys = this.#keys;
    cursor.string();
    const { stringStart, stringEnd, escaped } = cursor;
    const spelling = keys.find(previous, cursor.bytes, stringStart, stringEnd);
    if (spelling !== -1) return spelling;
    const key = cursor.text(stringStart, stringEnd, escaped);
    const field = keys.field(fieldName(key));
    if (field !== -1) return keys.learn(key, field, cursor.bytes, stringStart, stringEnd);
    const path = childPath(this.path, fieldName(key));
    if (context.unknownFields !== "ignore") throw unknownField(path);
    context.onIgnored(path);
    return -1;
  }

  /** The field has a value in this object already: of a key that is repeated, the last value counts, as in JSON.parse. */
  #refill(field: number, spelling: number): void {
    const one = this.#keys.spelling(this.#filledBy[field]!).key;
    const other = this.#keys.spelling(spelling).key;
    if (one !== other) throw duplicateKey(this.#top ? "form" : "value", this.path, one, other);
    this.#builder.children[field]!.truncate(this.#builder.length);
  }
}

class MapValues extends JsonValues {
  readonly #builder: MapBuilder;
  readonly #key: TextAppender;
  readonly #value: JsonValues;
  readonly #seen = new ByteKeys();

  constructor(builder: MapBuilder, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#key = createTextAppender(builder.key);
    this.#value = createJsonValues(builder.value, `${path}[]`, context);
  }

  protected override take(begin: number): boolean {
    if (begin !== OPEN_OBJECT) return false;
    const { cursor } = this;
    const start = cursor.at;
    const entries = this.#builder.key.length;
    this.#seen.clear();
    cursor.open();
    let c = cursor.next();
    if (c !== CLOSE_OBJECT) {
      for (;;) {
        if (c !== QUOTE) throw cursor.expected("a key in quotes");
        if (!this.#readKey()) {
          this.#builder.key.truncate(entries);
          this.#builder.value.truncate(entries);
          cursor.at = start;
          cursor.depth--;
          this.#readLast();
          return true;
        }
        if (cursor.next() !== COLON) throw cursor.expected("a colon after a key");
        cursor.at++;
        cursor.next();
        this.#value.read();
        c = cursor.next();
        if (c === CLOSE_OBJECT) break;
        if (c !== COMMA) throw cursor.expected("a comma in an object");
        cursor.at++;
        c = cursor.next();
      }
    }
    cursor.close();
    this.#builder.append();
    return true;
  }

  /** Takes the key at the cursor; false if the map has it already. */
  #readKey(): boolean {
    const { cursor } = this;
    cursor.string();
    const { stringStart, stringEnd } = cursor;
    let bytes = cursor.bytes;
    let start = stringStart;
    let end = stringEnd;
    if (cursor.escaped) {
      end = cursor.unescapeToScratch(stringStart, stringEnd);
      start = 0;
      bytes = cursor.scratch;
    }
    if (!this.#seen.add(bytes, start, end)) return false;
    if (!this.#key.append(bytes, start, end)) throw misfit(`${this.path} (its keys)`, this.#builder.key, "this text");
    return true;
  }

  /** Takes the map at the cursor, in which a key is repeated: its last value counts. */
  #readLast(): void {
    const { cursor } = this;
    // Values inside use the shared tape.
    const tape = new JsonTape(cursor);
    tape.read();
    const after = cursor.at;
    const { depth } = cursor;
    const last = new Map<string, number>();
    const members: [key: string, entry: number][] = [];
    for (let entry = 1; entry < tape.length; entry = tape.after(entry + 1)) {
      const key = cursor.text(tape.start(entry), tape.end(entry), tape.kind(entry) === ESCAPED_STRING);
      members.push([key, entry]);
      last.set(key, entry);
    }
    this.#seen.clear();
    cursor.depth = depth + 1;
    for (const [key, entry] of members) {
      if (last.get(key) !== entry) continue;
      cursor.at = tape.start(entry) - 1;
      this.#readKey();
      const kind = tape.kind(entry + 1);
      cursor.at = tape.start(entry + 1) - (kind === STRING || kind === ESCAPED_STRING ? 1 : 0);
      this.#value.read();
    }
    cursor.depth = depth;
    cursor.at = after;
    this.#builder.append();
  }
}
