/**
 * A place in the changes of a table or a lake. `12` is behind everything that snapshot 12 and the ones before it changed;
 * `12.2` behind the snapshots before 12 and the first two changes of 12. `0` is the beginning.
 */

import { InvalidInputError } from "@eider/core";
import { quote } from "./names.js";

export interface Position {
  readonly snapshot: number;
  /** Changes of this snapshot that lie before it; undefined for all of them. */
  readonly changes?: number;
}

const FORM = /^(0|[1-9]\d{0,15})(?:\.([1-9]\d{0,8}))?$/;

/** The beginning of every feed: where a cursor stands that was never moved. */
export const START = "0";

/** Undefined where the text is no position. */
export function readPosition(text: string): Position | undefined {
  const parts = typeof text === "string" ? FORM.exec(text) : undefined;
  if (!parts) return undefined;
  const [, snapshot, changes] = parts;
  const position = { snapshot: Number(snapshot), ...(changes !== undefined && { changes: Number(changes) }) };
  return Number.isSafeInteger(position.snapshot) && (changes === undefined || position.snapshot > 0)
    ? position
    : undefined;
}

/** @throws InvalidInputError `bad_position` */
export function parsePosition(text: string): Position {
  const position = readPosition(text);
  if (position) return position;
  throw new InvalidInputError(
    "bad_position",
    `${quote(text)} is no position in a feed: take what a change or a cursor gives, or ${quote(START)} for the beginning`,
    { subject: String(text) },
  );
}

export function formatPosition({ snapshot, changes }: Position): string {
  return changes === undefined ? String(snapshot) : `${snapshot}.${changes}`;
}
