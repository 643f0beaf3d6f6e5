/**
 * Definition and repetition levels (Dremel): what tells a null list from an empty one and from a list of null.
 * One walk over a batch's columns gives every leaf its levels and the positions of the values that are there.
 */

import type { Column } from "./columns.js";
import { InvalidInputError, SchemaError } from "./errors.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { childFields, type Field, formatType } from "./schema.js";

/** A leaf's entries in one row group: one for each value, and one wherever a null or an empty list ends the path. */
export interface LeafEntries {
  readonly column: Column;
  /** Entries, values and ends alike: Parquet's `num_values`. */
  readonly count: number;
  /** Undefined where every entry is a value. */
  readonly definition: Uint8Array | undefined;
  /** Undefined where every entry starts a row. */
  readonly repetition: Uint8Array | undefined;
  /** Indexes into `column` of the values, ascending. Undefined where that is 0, 1, … `column.length - 1`. */
  readonly positions: Int32Array | undefined;
  readonly values: number;
}

/** Entries on the way down. `index` points into the current column; −1 where the path has ended. */
interface State {
  readonly count: number;
  /** Undefined where each entry has reached `level`. */
  readonly definition: Uint8Array | undefined;
  readonly level: number;
  readonly repetition: Uint8Array | undefined;
  /** Undefined where entry i is value i of the column. */
  readonly index: Int32Array | undefined;
  readonly repetitionLevel: number;
}

/**
 * Calls `each` for every leaf below a top-level field, in the order of `parquetLeaves`.
 * @throws SchemaError `batch_mismatch` if a column does not have the field's type
 * @throws InvalidInputError `null_in_required` if a required field holds a null
 */
export function walkLeaves(field: Field, column: Column, rows: number, each: (entries: LeafEntries) => void): void {
  const top: State = {
    count: rows,
    definition: undefined,
    level: 0,
    repetition: undefined,
    index: undefined,
    repetitionLevel: 0,
  };
  walk(field, column, top, each);
}

function walk(field: Field, column: Column, above: State, each: (entries: LeafEntries) => void): void {
  checkType(field, column);
  const state = enter(field, column, above);
  switch (field.type.kind) {
    case "struct":
      field.type.fields.forEach((child, i) => {
        walk(child, column.children[i]!, state, each);
      });
      break;
    case "list":
      walk(field.type.element, column.children[0]!, repeat(column, state), each);
      break;
    case "map": {
      const entries = repeat(column, state);
      walk(field.type.key, column.children[0]!, entries, each);
      walk(field.type.value, column.children[1]!, entries, each);
      break;
    }
    default:
      each(finish(column, state));
  }
}

/** Nested types are compared child by child, on the way down. */
function checkType(field: Field, { type, children }: Column): void {
  const expected = childFields(field.type);
  if (type.kind === field.type.kind && children.length === expected.length) {
    if (expected.length > 0 || formatType(type) === formatType(field.type)) return;
  }
  throw mismatch(field, `is ${formatType(type)}, not ${formatType(field.type)}`);
}

function mismatch(field: Field, reason: string): SchemaError {
  return new SchemaError("batch_mismatch", `the batch's column ${JSON.stringify(field.name)} ${reason}`, {
    subject: field.name,
  });
}

/** Steps onto a column: a nullable one adds a definition level, and ends the path where it is null. */
function enter(field: Field, column: Column, above: State): State {
  const { count, index } = above;
  if (index === undefined && column.length !== count)
    throw mismatch(field, `has ${column.length} values, not ${count}`);
  const { validity } = column;
  const nulls = column.nullCount > 0 && validity !== undefined;
  if (!field.nullable) {
    if (nulls) checkRequired(field, column, above);
    return above;
  }
  const level = above.level + 1;
  if (above.definition === undefined && !nulls) return { ...above, level };
  const definition = new Uint8Array(count);
  const reached = above.definition === undefined ? undefined : above.definition;
  if (!nulls) {
    // Only the entries that came this far get the level.
    for (let i = 0; i < count; i++) definition[i] = index![i]! < 0 ? reached![i]! : level;
    return { ...above, level, definition };
  }
  const next = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const at = index === undefined ? i : index[i]!;
    if (at < 0) {
      next[i] = -1;
      definition[i] = reached![i]!;
    } else if ((validity[at >> 3]! >> (at & 7)) & 1) {
      next[i] = at;
      definition[i] = level;
    } else {
      next[i] = -1;
      definition[i] = above.level;
    }
  }
  return { ...above, level, definition, index: next };
}

function checkRequired(field: Field, column: Column, above: State): void {
  const { count, index } = above;
  const validity = column.validity!;
  for (let i = 0; i < count; i++) {
    const at = index === undefined ? i : index[i]!;
    if (at >= 0 && ((validity[at >> 3]! >> (at & 7)) & 1) === 0) {
      throw new InvalidInputError(
        "null_in_required",
        `the column ${JSON.stringify(field.name)} is not nullable but holds a null; give it a value or make it nullable`,
        { subject: field.name },
      );
    }
  }
}

/** Steps into a list or map: each of its elements becomes an entry; an empty one keeps its entry, one level short. */
function repeat(column: Column, above: State): State {
  const offsets = column.offsets!;
  const { index } = above;
  let count = 0;
  for (let i = 0; i < above.count; i++) {
    const at = index === undefined ? i : index[i]!;
    const size = at < 0 ? 0 : offsets[at + 1]! - offsets[at]!;
    count += size === 0 ? 1 : size;
  }
  const level = above.level + 1;
  const repetitionLevel = above.repetitionLevel + 1;
  const definition = new Uint8Array(count);
  const repetition = new Uint8Array(count);
  const next = new Int32Array(count);
  let to = 0;
  for (let i = 0; i < above.count; i++) {
    const at = index === undefined ? i : index[i]!;
    const first = above.repetition === undefined ? 0 : above.repetition[i]!;
    const start = at < 0 ? 0 : offsets[at]!;
    const end = at < 0 ? 0 : offsets[at + 1]!;
    repetition[to] = first;
    if (start === end) {
      definition[to] = above.definition === undefined ? above.level : above.definition[i]!;
      next[to++] = -1;
      continue;
    }
    definition[to] = level;
    next[to++] = start;
    for (let element = start + 1; element < end; element++) {
      repetition[to] = repetitionLevel;
      definition[to] = level;
      next[to++] = element;
    }
  }
  return { count, definition, level, repetition, index: next, repetitionLevel };
}

function finish(column: Column, state: State): LeafEntries {
  const { count, index, repetition } = state;
  if (index === undefined) {
    return { column, count, definition: undefined, repetition, positions: undefined, values: count };
  }
  const positions = new Int32Array(count);
  let values = 0;
  for (let i = 0; i < count; i++) {
    const at = index[i]!;
    positions[values] = at;
    // Overwritten by the next entry if the path ended here.
    if (at >= 0) values++;
  }
  const dense = values === column.length && (values === 0 || positions[values - 1] === values - 1);
  return {
    column,
    count,
    definition: values === count ? undefined : state.definition,
    repetition,
    positions: dense ? undefined : positions.subarray(0, values),
    values,
  };
}

/** Where pages begin: entry, value and row numbers, each with the totals at the end. */
export interface PageCuts {
  readonly entries: readonly number[];
  readonly values: readonly number[];
  readonly rows: readonly number[];
}

/** Bytes of the first n values of a chunk: `offsets[n]`, or n times `width`. */
export interface ValueSizes {
  readonly width: number;
  readonly offsets: Int32Array | undefined;
}

/**
 * Cuts a chunk into pages: at most `pageRows` rows, and about `pageBytes` of values, each page starting with a row,
 * as the page index requires.
 */
export function cutPages(
  leaf: ParquetLeaf,
  chunk: LeafEntries,
  sizes: ValueSizes,
  pageRows: number,
  pageBytes: number,
): PageCuts {
  const { count, definition, repetition } = chunk;
  const { offsets, width } = sizes;
  const entries = [0];
  const values = [0];
  const rows = [0];
  let row = 0;
  if (definition === undefined && repetition === undefined) {
    // Rows, entries and values are the same: no need to look at each.
    while (row < count) {
      const rest = Math.min(count, row + pageRows);
      const fit =
        offsets === undefined ? row + Math.floor(pageBytes / width) : firstBeyond(offsets, row, rest, pageBytes);
      row = Math.min(rest, Math.max(row + 1, fit));
      if (row === count) break;
      entries.push(row);
      values.push(row);
      rows.push(row);
    }
  }
  let value = 0;
  let pageRow = 0;
  let limit = (offsets?.[0] ?? 0) + pageBytes;
  for (let entry = row; entry < count; entry++) {
    if (repetition === undefined || repetition[entry] === 0) {
      const bytes = offsets === undefined ? value * width : offsets[value]!;
      if (row > pageRow && (row - pageRow >= pageRows || bytes >= limit)) {
        entries.push(entry);
        values.push(value);
        rows.push(row);
        pageRow = row;
        limit = bytes + pageBytes;
      }
      row++;
    }
    if (definition === undefined || definition[entry] === leaf.maxDefinition) value++;
  }
  entries.push(count);
  values.push(chunk.values);
  rows.push(row);
  return { entries, values, rows };
}

/** The first n in `start + 1` … `end` with `bytes` or more from `start` to it, or `end`. */
function firstBeyond(offsets: Int32Array, start: number, end: number, bytes: number): number {
  const limit = offsets[start]! + bytes;
  let low = start + 1;
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (offsets[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
