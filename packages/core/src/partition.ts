/** Sends each row of a batch to its partition. */

import type { PartitionValue, RecordBatch } from "./columns.js";
import { partitionCodes } from "./partition-codes.js";
import { nameKey } from "./schema.js";
import type { PartitionSpec } from "./transforms.js";

export interface PartitionRows {
  /** The partition tuple, one value per spec. */
  readonly values: readonly PartitionValue[];
  /** 0-based positions in the batch, ascending. */
  readonly rows: Uint32Array;
}

/**
 * Groups the rows of a batch by partition tuple, in order of first appearance; every row is in exactly one group.
 * Tuples are typed: `["a b", "c"]` and `["a", "b c"]` differ, and null is a value of its own. All NaN are one
 * partition, and so are −0 and 0. A column that the batch does not have is null in every row.
 */
export function routePartitions(batch: RecordBatch, specs: readonly PartitionSpec[]): PartitionRows[] {
  if (batch.length === 0) return [];
  const codes = specs.map((spec) => {
    const key = nameKey(spec.field.name);
    const index = batch.schema.fields.findIndex((field) => nameKey(field.name) === key);
    return index < 0 ? undefined : partitionCodes(batch.columns[index]!, spec.transform);
  });

  let groups = new Uint32Array(batch.length);
  let groupCount = 1;
  for (const code of codes) {
    if (code === undefined || code.values.length === 1) continue;
    if (groupCount === 1) {
      groups = code.codes.slice();
      groupCount = code.values.length;
    } else {
      groupCount = combine(groups, groupCount, code.codes, code.values.length);
    }
  }

  const rows = rowsByGroup(groups, groupCount);
  return rows.map((group) => {
    const first = group[0]!;
    return { values: codes.map((code) => (code === undefined ? null : code.values[code.codes[first]!]!)), rows: group };
  });
}

/** Pairs of codes up to this many are numbered through an array, more through a map. */
const DENSE_PAIRS = 1 << 20;

/** Refines the groups by another column's codes, in place; the new groups are numbered by first appearance. */
function combine(groups: Uint32Array, groupCount: number, codes: Uint32Array, codeCount: number): number {
  let count = 0;
  if (groupCount * codeCount <= DENSE_PAIRS) {
    const known = new Int32Array(groupCount * codeCount).fill(-1);
    for (let i = 0; i < groups.length; i++) {
      const pair = groups[i]! * codeCount + codes[i]!;
      if (known[pair]! < 0) known[pair] = count++;
      groups[i] = known[pair]!;
    }
  } else {
    // A pair is below rows², so it is exact up to 94 million rows per batch.
    const known = new Map<number, number>();
    for (let i = 0; i < groups.length; i++) {
      const pair = groups[i]! * codeCount + codes[i]!;
      let group = known.get(pair);
      if (group === undefined) {
        group = count++;
        known.set(pair, group);
      }
      groups[i] = group;
    }
  }
  return count;
}

/** Counting sort: one array of all rows, cut into groups. Every group has rows. */
function rowsByGroup(groups: Uint32Array, groupCount: number): Uint32Array[] {
  const ends = new Uint32Array(groupCount);
  for (let i = 0; i < groups.length; i++) ends[groups[i]!]!++;
  for (let g = 1; g < groupCount; g++) ends[g]! += ends[g - 1]!;
  const rows = new Uint32Array(groups.length);
  const next = new Uint32Array(groupCount);
  next.set(ends.subarray(0, groupCount - 1), 1);
  for (let i = 0; i < groups.length; i++) rows[next[groups[i]!]!++] = i;
  return Array.from(ends, (end, g) => rows.subarray(g === 0 ? 0 : ends[g - 1]!, end));
}

/** A partition tuple as text: equal exactly when the tuples are equal, as types too. */
export function partitionKey(values: readonly PartitionValue[]): string {
  return JSON.stringify(
    values.map((value) =>
      typeof value === "bigint" || typeof value === "number" ? [typeof value, `${value}`] : value,
    ),
  );
}
