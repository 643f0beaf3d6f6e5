/** What the integer columns of a batch hold: whether a column may be widened to a type of fewer digits depends on it. */

import { isValid } from "./bitmap.js";
import type { Column, RecordBatch } from "./columns.js";
import { childFields, type Field } from "./schema.js";

/** The smallest and the largest value of an integer column. */
export interface FieldBounds {
  readonly fieldId: number;
  readonly min: bigint;
  readonly max: bigint;
}

/** Of each integer column that has a value, nested ones included. Dates, times and decimals are no integers. */
export function integerBounds({ schema, columns }: RecordBatch): FieldBounds[] {
  const bounds: FieldBounds[] = [];
  schema.fields.forEach((field, i) => {
    collect(field, columns[i]!, bounds);
  });
  return bounds;
}

function collect({ id: fieldId, type }: Field, column: Column, bounds: FieldBounds[]): void {
  if (/^u?int\d/.test(type.kind)) {
    const ends = endsOf(column);
    if (ends) bounds.push({ fieldId, min: BigInt(ends.min), max: BigInt(ends.max) });
  }
  childFields(type).forEach((child, i) => {
    collect(child, column.children[i]!, bounds);
  });
}

function endsOf({
  length,
  nullCount,
  validity,
  values,
}: Column): { min: number | bigint; max: number | bigint } | undefined {
  const all = values as ArrayLike<number | bigint>;
  const present = nullCount > 0 ? validity : undefined;
  let min: number | bigint | undefined;
  let max: number | bigint | undefined;
  for (let i = 0; i < length; i++) {
    if (!isValid(present, i)) continue;
    const value = all[i]!;
    if (min === undefined || value < min) min = value;
    if (max === undefined || value > max) max = value;
  }
  return min === undefined || max === undefined ? undefined : { min, max };
}
