/** What the values of JavaScript rows are, and their JSON text. */

import { base64Text } from "./binary-text.js";
import { MAX_DEPTH, RowFault } from "./row-batches.js";

/** Kinds of value. `list` are arrays and typed arrays but those of bytes; `map` is a `Map`; `other` cannot be stored. */
export type JsKind =
  | "null"
  | "bool"
  | "number"
  | "bigint"
  | "text"
  | "date"
  | "binary"
  | "list"
  | "map"
  | "object"
  | "other";

/** Objects whose content `Object.keys` does not show: taking them as objects would lose it. */
const OPAQUE: ReadonlySet<string> = new Set(
  ["Boolean", "Error", "Number", "Promise", "RegExp", "Set", "String", "WeakMap", "WeakRef", "WeakSet"].map(
    (name) => `[object ${name}]`,
  ),
);

/** Told by tags, not by `instanceof`, which is false for objects of another realm (Jest, vm contexts). */
function objectKind(value: object): JsKind {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return "object";
  if (Array.isArray(value)) return "list";
  const tag = Object.prototype.toString.call(value);
  if (ArrayBuffer.isView(value)) return BYTES.has(tag) ? "binary" : "list";
  switch (tag) {
    case "[object Date]":
      return "date";
    case "[object Map]":
      return "map";
    case "[object ArrayBuffer]":
    case "[object SharedArrayBuffer]":
      return "binary";
    default:
      return OPAQUE.has(tag) ? "other" : "object";
  }
}

const BYTES: ReadonlySet<string> = new Set(["[object Uint8Array]", "[object Uint8ClampedArray]", "[object DataView]"]);

export function kindOf(value: unknown): JsKind {
  switch (typeof value) {
    case "string":
      return "text";
    case "number":
      return "number";
    case "boolean":
      return "bool";
    case "bigint":
      return "bigint";
    case "undefined":
      return "null";
    case "object":
      return value === null ? "null" : objectKind(value);
    default:
      return "other";
  }
}

/**
 * The value that stands for an object with a `toJSON` method, as in JSON.stringify; all others stand for themselves,
 * dates and bytes too.
 */
export function unwrap(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const { toJSON } = value as { readonly toJSON?: unknown };
  if (typeof toJSON !== "function") return value;
  const kind = objectKind(value);
  if (kind === "date" || kind === "binary") return value;
  try {
    return toJSON.call(value, "");
  } catch {
    throw new RowFault("form", "unsupported_value", "holds an object whose toJSON throws");
  }
}

/** The bytes of a value of kind `binary`, not copied. */
export function bytesOfValue(value: unknown): Uint8Array {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return new Uint8Array(value as ArrayBuffer);
}

/** Whether the members of a value of kind `object` or `map` have names. */
export function hasNames(value: unknown, kind: JsKind): boolean {
  return kind !== "map" || Array.from((value as Map<unknown, unknown>).keys()).every((key) => typeof key === "string");
}

/**
 * The names of the members of a value of kind `object` or `map`. Members that are undefined are as good as absent:
 * skip them.
 * @throws RowFault for a Map with other keys
 */
export function keysOf(value: unknown, kind: JsKind): readonly string[] {
  if (kind === "object") return Object.keys(value as object);
  if (!hasNames(value, kind)) {
    throw new RowFault("value", "type_mismatch", "a Map with keys that are not strings fits only a column of type map");
  }
  return Array.from((value as Map<string, unknown>).keys());
}

export function memberOf(value: unknown, kind: JsKind, key: string): unknown {
  return kind === "object"
    ? (value as Readonly<Record<string, unknown>>)[key]
    : (value as Map<string, unknown>).get(key);
}

export function unsupported(value: unknown): RowFault {
  const what = typeof value === "object" ? Object.prototype.toString.call(value).slice(8, -1) : typeof value;
  return new RowFault("form", "unsupported_value", `holds a ${what}, which has no column type; convert it before`);
}

export function tooDeep(): RowFault {
  return new RowFault("form", "too_deep", `is nested deeper than ${MAX_DEPTH} levels, or refers to itself`);
}

export function badText(): RowFault {
  return new RowFault("form", "bad_text", "holds text with half of a surrogate pair, which UTF-8 cannot express");
}

export function badDate(): RowFault {
  return new RowFault("form", "bad_date", "holds an invalid Date, or one outside the years 1 to 9999");
}

function checkDate(date: Date): void {
  const time = date.getTime();
  if (!(time >= FIRST_TIME && time <= LAST_TIME)) throw badDate();
}

const FIRST_TIME = Date.parse("0001-01-01T00:00:00.000Z");
const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z");

/** In Unicode mode this matches only surrogates without their pair. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Checks what would make the row a reject under any schema.
 * @throws RowFault
 */
export function checkRow(row: unknown): void {
  const value = unwrap(row);
  const kind = kindOf(value);
  if (kind !== "object" && kind !== "map") throw notAnObject();
  check(value, kind, 1);
}

export function notAnObject(): RowFault {
  return new RowFault("form", "not_an_object", "is not an object");
}

function check(value: unknown, kind: JsKind, depth: number): void {
  switch (kind) {
    case "text":
      if (LONE_SURROGATE.test(value as string)) throw badText();
      break;
    case "date":
      checkDate(value as Date);
      break;
    case "list":
      if (depth > MAX_DEPTH) throw tooDeep();
      for (const element of value as Iterable<unknown>) checkMember(element, depth);
      break;
    case "map":
      // Keys that are no strings may fit a map column.
      if (depth > MAX_DEPTH) throw tooDeep();
      for (const [key, member] of value as Map<unknown, unknown>) {
        checkMember(key, depth);
        checkMember(member, depth);
      }
      break;
    case "object":
      if (depth > MAX_DEPTH) throw tooDeep();
      for (const key of Object.keys(value as object)) {
        checkMember(key, depth);
        checkMember(memberOf(value, kind, key), depth);
      }
      break;
    case "other":
      throw unsupported(value);
  }
}

function checkMember(member: unknown, depth: number): void {
  const value = unwrap(member);
  check(value, kindOf(value), depth + 1);
}

/**
 * JSON text of a value: bigints as digits, dates as ISO 8601, bytes as base64.
 * @throws RowFault where it has none
 */
export function jsonText(value: unknown, depth = 0): string {
  const plain = unwrap(value);
  const kind = kindOf(plain);
  switch (kind) {
    case "null":
      return "null";
    case "bool":
    case "bigint":
      return String(plain);
    case "number":
      return numberText(plain as number);
    case "text":
      if (LONE_SURROGATE.test(plain as string)) throw badText();
      return JSON.stringify(plain);
    case "date": {
      checkDate(plain as Date);
      return JSON.stringify((plain as Date).toISOString());
    }
    case "binary":
      return `"${base64Text(bytesOfValue(plain))}"`;
    case "list":
      if (depth >= MAX_DEPTH) throw tooDeep();
      return `[${Array.from(plain as Iterable<unknown>, (element) => jsonText(element, depth + 1)).join(",")}]`;
    case "object":
    case "map": {
      if (depth >= MAX_DEPTH) throw tooDeep();
      const members: string[] = [];
      for (const key of keysOf(plain, kind)) {
        const member = memberOf(plain, kind, key);
        if (member === undefined) continue;
        if (LONE_SURROGATE.test(key)) throw badText();
        members.push(`${JSON.stringify(key)}:${jsonText(member, depth + 1)}`);
      }
      return `{${members.join(",")}}`;
    }
    case "other":
      throw unsupported(plain);
  }
}

function numberText(value: number): string {
  if (!Number.isFinite(value)) {
    throw new RowFault(
      "value",
      "type_mismatch",
      "a column of type json takes JSON, which knows no NaN and no Infinity",
    );
  }
  return Object.is(value, -0) ? "-0" : String(value);
}
