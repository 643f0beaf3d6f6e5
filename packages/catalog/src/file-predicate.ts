/**
 * Which rows a reader wants, so that files without any can be left out. A listing by a predicate holds every file that
 * may have a row for which it is true (not false, and not null), and as few others as the statistics allow.
 */

import type { BoundValue, DataType } from "@eider/core";

export type Comparison = "=" | "<>" | "<" | "<=" | ">" | ">=";

/** A leaf column that is not below a list or a map, and its type in the schema that the reader sees. */
export interface PredicateField {
  readonly id: number;
  readonly type: DataType;
}

export type FilePredicate =
  /** No row of any file; without operands, `or` says the same. */
  | { readonly kind: "or"; readonly operands: readonly FilePredicate[] }
  /** Without operands: every row, as far as is known. */
  | { readonly kind: "and"; readonly operands: readonly FilePredicate[] }
  /** In the order of SQL: NaN equals itself and is above all. A value that is NaN compares with nothing here. */
  | {
      readonly kind: "compare";
      readonly field: PredicateField;
      readonly comparison: Comparison;
      readonly value: BoundValue;
    }
  | { readonly kind: "null" | "present"; readonly field: PredicateField };

/** Says nothing: every file may match. */
export const ANY_FILE: FilePredicate = { kind: "and", operands: [] };

export function allOf(operands: readonly FilePredicate[]): FilePredicate {
  const telling = operands.filter((operand) => !saysNothing(operand));
  return telling.length === 1 ? telling[0]! : { kind: "and", operands: telling };
}

export function anyOf(operands: readonly FilePredicate[]): FilePredicate {
  if (operands.some(saysNothing)) return ANY_FILE;
  return operands.length === 1 ? operands[0]! : { kind: "or", operands };
}

export function saysNothing(predicate: FilePredicate): boolean {
  return predicate.kind === "and" && predicate.operands.length === 0;
}

/** Equal texts mean equal predicates. */
export function predicateKey(predicate: FilePredicate): string {
  return JSON.stringify(predicate, (_, value: unknown) => {
    if (typeof value === "bigint") return `${value}n`;
    if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
    return Object.is(value, -0) || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value;
  });
}
