/**
 * Canonical JSON: the same data always gives the same text, whatever the order of its keys. In two forms: plain JSON for
 * text that is stored, and the form that is hashed to tell whether two batches of rows are the same.
 */

import { base64Text } from "./binary-text.js";
import { InvalidInputError } from "./errors.js";
import { MAX_DEPTH } from "./row-batches.js";

/**
 * Compact JSON with keys sorted by code point at every depth, array order kept, non-ASCII characters as they are, and
 * numbers as `JSON.stringify` writes them: `1.0` is `1`, and −0 is `0`. A bigint is written with all its digits, a Date
 * or anything else with `toJSON` as what that returns, binary as base64, a Map as an object.
 * @throws InvalidInputError `too_deep` beyond 100 levels, which cycles are too
 */
export function canonicalJson(value: unknown): string {
  return write(value, "", [], JSON_FORM) ?? "null";
}

/**
 * A row as text to be hashed. Rows of equal content give equal text and rows of different content never do:
 * - keys in code point order; keys of the row itself that are null or undefined count as absent
 * - numbers by exact value, so that 1, 1.0 and 1n are equal and so are 0 and −0
 * - NaN, infinities and binary are written as no JSON value is, so no text or number equals them
 * - a Date equals its ISO 8601 text: rows that went through JSON once, as in a queue, are the same rows
 * - what no table takes (functions, symbols, cycles, more than 100 levels) is marked as such, and never throws
 *
 * The text has no line feed. It is not meant to be parsed.
 */
export function canonicalRow(row: unknown): string {
  return write(row, "", [], HASH_FORM) ?? "null";
}

/** Where the two forms differ. `undefined` means that the value counts as absent. */
interface Form {
  readonly nonFinite: (value: number) => string;
  readonly integer: (value: number) => string;
  readonly binary: (bytes: Uint8Array) => string;
  readonly foreign: (kind: "function" | "symbol") => string | undefined;
  readonly tooDeep: () => string;
  /** Whether null counts as absent at the top. */
  readonly topNullAbsent: boolean;
}

const JSON_FORM: Form = {
  nonFinite: () => "null",
  integer: (value) => JSON.stringify(value),
  binary: (bytes) => `"${base64Text(bytes)}"`,
  foreign: () => undefined,
  tooDeep: () => {
    throw new InvalidInputError("too_deep", `a value is nested deeper than ${MAX_DEPTH} levels, or contains itself`);
  },
  topNullAbsent: false,
};

const HASH_FORM: Form = {
  nonFinite: (value) => String(value),
  // Beyond 1e21 String() changes to an exponent and rounds; the digits of the exact value equal a bigint's.
  integer: (value) => BigInt(value).toString(),
  binary: (bytes) => `binary"${base64Text(bytes)}"`,
  foreign: (kind) => kind,
  tooDeep: () => "deep",
  topNullAbsent: true,
};

/** `path` holds the objects around the value, outermost first. */
function write(value: unknown, key: string, path: object[], form: Form): string | undefined {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      if (Number.isSafeInteger(value)) return value === 0 ? "0" : String(value);
      if (!Number.isFinite(value)) return form.nonFinite(value);
      return Number.isInteger(value) ? form.integer(value) : String(value);
    case "boolean":
      return value ? "true" : "false";
    case "bigint":
      return value.toString();
    case "undefined":
      return undefined;
    case "function":
    case "symbol":
      return form.foreign(typeof value as "function" | "symbol");
  }
  return value === null ? "null" : writeObject(value as object, key, path, form, true);
}

function writeObject(value: object, key: string, path: object[], form: Form, convert: boolean): string | undefined {
  // Before toJSON: a Buffer has one, and is binary all the same.
  if (value instanceof Uint8Array) return form.binary(value);
  if (value instanceof ArrayBuffer) return form.binary(new Uint8Array(value));
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? form.nonFinite(Number.NaN) : `"${value.toISOString()}"`;
  }
  const { toJSON } = value as { toJSON?: unknown };
  if (convert && typeof toJSON === "function") {
    const converted: unknown = toJSON.call(value, key);
    // Once only, as JSON.stringify does: what comes back may have a toJSON of its own.
    if (typeof converted === "object" && converted !== null) return writeObject(converted, key, path, form, false);
    return write(converted, key, path, form);
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    return write(value.valueOf(), key, path, form);
  }
  if (path.length >= MAX_DEPTH || path.includes(value)) return form.tooDeep();
  path.push(value);
  const text = writeChildren(value, path, form);
  path.pop();
  return text;
}

function writeChildren(value: object, path: object[], form: Form): string {
  if (Array.isArray(value) || value instanceof Set) return writeArray(value, path, form);
  if (ArrayBuffer.isView(value)) {
    if (value instanceof DataView) return form.binary(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    return writeArray(value as unknown as Iterable<unknown>, path, form);
  }
  if (value instanceof Map) {
    const entries = new Map(Array.from(value, ([key, child]): [string, unknown] => [String(key), child]));
    return writeEntries([...entries.keys()], (key) => entries.get(key), path, form);
  }
  const record = value as Readonly<Record<string, unknown>>;
  return writeEntries(Object.keys(record), (key) => record[key], path, form);
}

function writeArray(values: Iterable<unknown>, path: object[], form: Form): string {
  let text = "";
  let index = 0;
  for (const value of values) {
    if (index > 0) text += ",";
    text += write(value, String(index++), path, form) ?? "null";
  }
  return `[${text}]`;
}

function writeEntries(keys: string[], get: (key: string) => unknown, path: object[], form: Form): string {
  const shape = shapeOf(keys);
  const nullAbsent = form.topNullAbsent && path.length === 1;
  let text = "";
  for (let i = 0; i < shape.sorted.length; i++) {
    const key = shape.sorted[i]!;
    const written = write(get(key), key, path, form);
    if (written === undefined || (nullAbsent && written === "null")) continue;
    text += (text === "" ? "" : ",") + shape.prefixes[i]! + written;
  }
  return `{${text}}`;
}

/** Keys in the order of an object, sorted, and as JSON with their colon. */
interface Shape {
  readonly keys: readonly string[];
  readonly sorted: readonly string[];
  readonly prefixes: readonly string[];
}

/**
 * The last shape seen that begins with a key. Rows mostly come in few shapes, and sorting and quoting the keys of each
 * anew takes half of the time.
 */
const shapes = new Map<string, Shape>();
const MAX_SHAPES = 1000;
/** Wider objects are not remembered: some use ids as keys. */
const MAX_SHAPE_KEYS = 256;

function shapeOf(keys: readonly string[]): Shape {
  const first = keys[0] ?? "";
  const known = shapes.get(first);
  if (known && sameKeys(known.keys, keys)) return known;
  const sorted = keys.toSorted(compareCodePoints);
  const shape = { keys, sorted, prefixes: sorted.map((key) => `${JSON.stringify(key)}:`) };
  if (keys.length <= MAX_SHAPE_KEYS) {
    if (shapes.size >= MAX_SHAPES) shapes.clear();
    shapes.set(first, shape);
  }
  return shape;
}

function sameKeys(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * Orders strings by code point, which is also the order of their UTF-8 bytes. JavaScript's own order differs where a
 * surrogate pair meets U+E000 to U+FFFF.
 */
export function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Puts surrogates above all other code units. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
