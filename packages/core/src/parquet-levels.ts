/**
 * Definition and repetition levels (Dremel): what tells a null list from an empty one and from a list of null.
 * One walk over a batch's columns gives every leaf its levels and the positions of the values that are there.
 */

import { bitmapBytes } from "./bitmap.js";
import type { Column } from "./columns.js";
import { InvalidInputError, SchemaError } from "./errors.js";
import type { EncodeMemory } from "./parquet-memory.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { childFields, type Field, formatType } from "./schema.js";

/**
 * A leaf's entries in one row group: one for each value, and one wherever a null or an empty list ends the path. Arrays
 * are addresses in the encoder's memory.
 */
export interface LeafEntries {
  readonly column: Column;
  /** Entries, values and ends alike: Parquet's `num_values`. */
  readonly count: number;
  /** A byte each; 0 where every entry is a value. */
  readonly definition: number;
  /** A byte each; 0 where every entry starts a row. */
  readonly repetition: number;
  /** 32-bit indexes into `column` of the values, ascending; 0 where that is 0, 1, … `column.length - 1`. */
  readonly positions: number;
  readonly values: number;
}

/** Entries on the way down. */
interface State {
  readonly count: number;
  /** A byte each; 0 where each entry has reached `level`. */
  readonly definition: number;
  readonly level: number;
  readonly repetition: number;
  /** 32 bits each: which value of the current column, −1 where the path has ended. 0 where entry i is value i. */
  readonly index: number;
  readonly repetitionLevel: number;
}

/**
 * Calls `each` for every leaf below a top-level field, in the order of `parquetLeaves`. What it gets is valid until it
 * returns.
 * @throws SchemaError `batch_mismatch` if a column does not have the field's type
 * @throws InvalidInputError `null_in_required` if a required field holds a null
 */
export function walkLeaves(
  memory: EncodeMemory,
  field: Field,
  column: Column,
  rows: number,
  each: (entries: LeafEntries) => void,
): void {
  const top: State = { count: rows, definition: 0, level: 0, repetition: 0, index: 0, repetitionLevel: 0 };
  new Walk(memory, each).step(field, column, top);
}

class Walk {
  readonly #memory: EncodeMemory;
  readonly #each: (entries: LeafEntries) => void;

  constructor(memory: EncodeMemory, each: (entries: LeafEntries) => void) {
    this.#memory = memory;
    this.#each = each;
  }

  step(field: Field, column: Column, above: State): void {
    checkType(field, column);
    const mark = this.#memory.mark();
    switch (field.type.kind) {
      case "struct": {
        const state = this.#enter(field, column, above);
        field.type.fields.forEach((child, i) => {
          this.step(child, column.children[i]!, state);
        });
        break;
      }
      case "list": {
        const state = this.#repeat(column, this.#enter(field, column, above));
        this.step(field.type.element, column.children[0]!, state);
        break;
      }
      case "map": {
        const state = this.#repeat(column, this.#enter(field, column, above));
        this.step(field.type.key, column.children[0]!, state);
        this.step(field.type.value, column.children[1]!, state);
        break;
      }
      default:
        this.#each(this.#leaf(field, column, above));
    }
    this.#memory.release(mark);
  }

  /** Steps onto a column: a nullable one adds a definition level, and ends the path where it is null. */
  #enter(field: Field, column: Column, above: State): State {
    const { loops } = this.#memory;
    const { count, index } = above;
    const validity = this.#validity(field, column, above);
    if (!field.nullable) return above;
    const level = above.level + 1;
    if (above.definition === 0 && validity === 0) return { ...above, level };
    const definition = this.#memory.take(count);
    const next = this.#memory.take(4 * count);
    loops.enterNullable(count, above.level, above.definition, index, validity, definition, next);
    return { ...above, level, definition, index: validity === 0 ? index : next };
  }

  /** The validity bits, 0 where there are no nulls. */
  #validity(field: Field, { length, nullCount, validity }: Column, { count, index }: State): number {
    if (index === 0 && length !== count) throw mismatch(field, `has ${length} values, not ${count}`);
    if (nullCount === 0 || validity === undefined) return 0;
    const bits = this.#memory.copyIn(validity, bitmapBytes(length));
    if (!field.nullable && this.#memory.loops.hasNull(count, index, bits) !== 0) throw nullInRequired(field);
    return bits;
  }

  /** Steps into a list or map: each of its elements becomes an entry; an empty one keeps its entry, one level short. */
  #repeat(column: Column, above: State): State {
    const { loops } = this.#memory;
    const offsets = this.#memory.copyIn(column.offsets!, 4 * (column.length + 1));
    // Each element is an entry, and so is each list without any.
    const most = above.count + column.offsets![column.length]!;
    const definition = this.#memory.take(most);
    const repetition = this.#memory.take(most);
    const index = this.#memory.take(4 * most);
    const repetitionLevel = above.repetitionLevel + 1;
    const count = loops.enterRepeated(
      above.count,
      above.level,
      repetitionLevel,
      above.definition,
      above.repetition,
      above.index,
      offsets,
      definition,
      repetition,
      index,
    );
    return { count, definition, level: above.level + 1, repetition, index, repetitionLevel };
  }

  #leaf(field: Field, column: Column, above: State): LeafEntries {
    const { loops } = this.#memory;
    const { count, repetition } = above;
    if (above.index === 0) {
      const validity = this.#validity(field, column, above);
      if (validity === 0 || !field.nullable) {
        return { column, count, definition: 0, repetition, positions: 0, values: count };
      }
      const definition = this.#memory.take(count);
      const positions = this.#memory.take(4 * count);
      const values = loops.enterFlat(count, above.level, validity, definition, positions);
      return { column, count, definition, repetition, positions, values };
    }
    const { definition, index } = this.#enter(field, column, above);
    const positions = this.#memory.take(4 * count);
    const values = loops.keepPositions(count, index, positions);
    const last = values === 0 ? -1 : this.#memory.int32(positions + 4 * (values - 1));
    return {
      column,
      count,
      definition: values === count ? 0 : definition,
      repetition,
      positions: values === column.length && last === values - 1 ? 0 : positions,
      values,
    };
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

function nullInRequired(field: Field): InvalidInputError {
  return new InvalidInputError(
    "null_in_required",
    `the column ${JSON.stringify(field.name)} is not nullable but holds a null; give it a value or make it nullable`,
    { subject: field.name },
  );
}

/** Where pages begin: entry, value and row numbers, each with the totals at the end. */
export interface PageCuts {
  readonly entries: readonly number[];
  readonly values: readonly number[];
  readonly rows: readonly number[];
}

/** Bytes of the first n values of a chunk: n times `width`, or what the array of 32 bits at `offsets` says. */
export interface ValueSizes {
  readonly width: number;
  /** 0 where there is a width. */
  readonly offsets: number;
}

/**
 * Cuts a chunk into pages: at most `pageRows` rows, and about `pageBytes` of values, each page starting with a row,
 * as the page index requires.
 */
export function cutPages(
  memory: EncodeMemory,
  leaf: ParquetLeaf,
  { count, values, definition, repetition }: LeafEntries,
  { offsets, width }: ValueSizes,
  pageRows: number,
  pageBytes: number,
): PageCuts {
  const mark = memory.mark();
  // A page holds a row at least.
  const at = memory.take(12 * (count + 1));
  const rowLimit = Math.min(pageRows, 0x7fff_ffff);
  const { maxDefinition } = leaf;
  const cuts = memory.loops.cutPages(
    count,
    values,
    definition,
    repetition,
    maxDefinition,
    offsets,
    width,
    rowLimit,
    pageBytes,
    at,
  );
  const column = (place: number): number[] =>
    Array.from({ length: cuts }, (_, i) => memory.int32(at + 12 * i + 4 * place));
  memory.release(mark);
  return { entries: column(0), values: column(1), rows: column(2) };
}
