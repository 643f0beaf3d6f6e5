/** Rules for the names users choose. The same rules hold wherever a name comes in. */

import { InvalidInputError } from "@eider/core";
import type { SourceRange } from "./catalog.js";

/** Bytes of UTF-8. */
const MAX_NAME_BYTES = 255;
const MAX_BATCH_ID_BYTES = 1024;

/** Namespaces with a meaning of their own: ours, DuckDB's base database, and the schemas that every DuckDB database has. */
const RESERVED_NAMESPACES: ReadonlySet<string> = new Set([
  "eider",
  "main",
  "memory",
  "temp",
  "system",
  "information_schema",
  "pg_catalog",
]);

const CONTROL = /\p{Cc}/u;
/** Two words that need no quotes in SQL. */
const QUALIFIED = /^([\p{L}_][\p{L}\p{N}_]*)\.([\p{L}_][\p{L}\p{N}_]*)$/u;

/** A table's name in its parts, as SQL names it: `namespace.name`, or `name` alone. */
export interface TableName {
  readonly namespace?: string;
  readonly name: string;
}

/**
 * Splits a table name. `ns.events` has a namespace exactly when both sides of its only dot are plain words; every other
 * name is one part, dots included, and is quoted in SQL: `"x-y.z"`. So each name has one reading, and no two names share one.
 * @throws InvalidInputError `bad_name` unless it is 1 to 255 bytes of valid Unicode without control characters, outside
 * the reserved namespaces
 */
export function parseTableName(name: string): TableName {
  const fail = (reason: string): never => {
    throw new InvalidInputError("bad_name", `the table name ${quote(name)} ${reason}`, { subject: name });
  };
  if (typeof name !== "string" || name === "") fail("must be a text of at least one character");
  if (!isUnicode(name)) fail("is not valid Unicode");
  if (CONTROL.test(name)) fail("holds a control character");
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) fail(`is longer than ${MAX_NAME_BYTES} bytes`);
  const dot = name.indexOf(".");
  const first = dot < 0 ? "" : name.slice(0, dot).toLowerCase();
  if (first === "eider") fail("begins with eider., which is kept for system tables");
  const parts = QUALIFIED.exec(name);
  if (!parts) return { name };
  // SQL finds a database before a namespace, and the databases that queries work in are called `_eider…`.
  if (RESERVED_NAMESPACES.has(first) || first.startsWith("_eider"))
    fail(`is in the namespace ${first}, which SQL keeps for itself`);
  return { namespace: parts[1]!, name: parts[2]! };
}

/**
 * Any text may be a batch id, `__proto__` as well as `a/b`.
 * @throws InvalidInputError `bad_batch_id` unless it is 1 to 1024 bytes of valid Unicode
 */
export function checkBatchId(batchId: string): void {
  const fail = (reason: string): never => {
    throw new InvalidInputError("bad_batch_id", `the batch id ${quote(batchId)} ${reason}`, { subject: batchId });
  };
  if (typeof batchId !== "string" || batchId === "") fail("must be a text of at least one character");
  if (!isUnicode(batchId)) fail("is not valid Unicode");
  if (Buffer.byteLength(batchId) > MAX_BATCH_ID_BYTES) fail(`is longer than ${MAX_BATCH_ID_BYTES} bytes`);
}

/**
 * A tag's name never looks like the number of a snapshot or an instant, both of which begin with a digit.
 * @throws InvalidInputError `bad_name` unless it is 1 to 255 bytes of valid Unicode without control characters
 */
export function checkTagName(name: string): void {
  checkLabel(name, "tag");
  if (/^\d/.test(name)) {
    throw new InvalidInputError("bad_name", `the tag ${quote(name)} begins with a digit, as snapshots and times do`, {
      subject: name,
    });
  }
}

/** @throws InvalidInputError `bad_name` unless it is 1 to 255 bytes of valid Unicode without control characters */
export function checkLabel(name: string, what: "tag" | "cursor" | "source"): void {
  const fail = (reason: string): never => {
    throw new InvalidInputError("bad_name", `the name of a ${what} ${reason}: ${quote(name)}`, {
      subject: String(name),
    });
  };
  if (typeof name !== "string" || name === "") fail("must be a text of at least one character");
  if (!isUnicode(name)) fail("is not valid Unicode");
  if (CONTROL.test(name)) fail("holds a control character");
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) fail(`is longer than ${MAX_NAME_BYTES} bytes`);
}

/** Decimal digits of a number from 0 to 2^63 − 1. */
export function isSequence(digits: string): boolean {
  return /^(0|[1-9]\d{0,18})$/.test(digits) && BigInt(digits) < 2n ** 63n;
}

/** The batch id of a part of a source. */
export function rangeBatchId({ source, first, last }: SourceRange): string {
  return first === last ? `${source}#${last}` : `${source}#${first}-${last}`;
}

/** Without lone surrogates, which UTF-8 cannot hold. */
export function isUnicode(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** As JSON text, cut to a length that fits a message. */
export function quote(text: unknown): string {
  const json = JSON.stringify(text) ?? String(text);
  return json.length > 80 ? `${json.slice(0, 79)}…` : json;
}
