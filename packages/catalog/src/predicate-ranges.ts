/** Parts of a file predicate that one search by bounds answers together: two ends of a column, and lists of its values. */

import { type BoundClass, boundClass, fitsBound } from "./bounds.js";
import type { Comparison, FilePredicate } from "./file-predicate.js";

export type Compare = Extract<FilePredicate, { kind: "compare" }>;

/** Above one value of a column and below another, both of one class. */
export interface Range {
  readonly kind: "range";
  readonly lower: Compare;
  readonly upper: Compare;
}

/** Equal to one of some values of a column, all of one class. */
export interface Points {
  readonly kind: "points";
  readonly operands: readonly [Compare, ...Compare[]];
}

const LOWER: ReadonlySet<Comparison> = new Set([">", ">="]);
const UPPER: ReadonlySet<Comparison> = new Set(["<", "<="]);

/** Of the bounds that the value can be compared with. */
export function classOf({ field, value }: Compare): BoundClass | undefined {
  const kind = boundClass(field.type);
  return kind !== undefined && fitsBound(kind, value) ? kind : undefined;
}

/** Operands of AND, the ends of a column joined to ranges. */
export function withRanges(operands: readonly FilePredicate[]): (FilePredicate | Range)[] {
  const joined: (FilePredicate | Range)[] = [];
  const waiting = new Map<string, Compare[]>();
  for (const operand of operands) {
    const column = columnOf(operand);
    const ends = operand.kind === "compare" ? [LOWER, UPPER].filter((set) => set.has(operand.comparison)) : [];
    if (operand.kind !== "compare" || column === undefined || ends.length === 0) {
      joined.push(operand);
      continue;
    }
    const others = waiting.get(column) ?? [];
    waiting.set(column, others);
    const other = others.findIndex(({ comparison }) => !ends[0]!.has(comparison));
    if (other < 0) others.push(operand);
    else {
      const [partner] = others.splice(other, 1) as [Compare];
      const [lower, upper] = ends[0] === LOWER ? [operand, partner] : [partner, operand];
      joined.push({ kind: "range", lower, upper });
    }
  }
  return [...joined, ...[...waiting.values()].flat()];
}

/** Operands of OR, the values of a column joined to points. */
export function withPoints(operands: readonly FilePredicate[]): (FilePredicate | Points)[] {
  const joined: (FilePredicate | Points)[] = [];
  const lists = new Map<string, [Compare, ...Compare[]]>();
  for (const operand of operands) {
    const column = columnOf(operand);
    if (operand.kind !== "compare" || column === undefined || operand.comparison !== "=") {
      joined.push(operand);
      continue;
    }
    const list = lists.get(column);
    if (list) list.push(operand);
    else lists.set(column, [operand]);
  }
  return [...joined, ...[...lists.values()].map((list): Points => ({ kind: "points", operands: list }))];
}

/** Equal where the values of two comparisons meet the same bounds. */
function columnOf(operand: FilePredicate): string | undefined {
  const kind = operand.kind === "compare" ? classOf(operand) : undefined;
  return operand.kind === "compare" && kind !== undefined ? `${operand.field.id} ${kind}` : undefined;
}
