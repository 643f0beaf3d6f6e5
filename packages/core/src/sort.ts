/** The order of rows within data files. */

import { isValid } from "./bitmap.js";
import type { Column, RecordBatch } from "./columns.js";
import { SchemaError } from "./errors.js";
import { bytesOf, valueBytes, wordsOf } from "./layout.js";
import { formatType, nameKey, type Schema } from "./schema.js";
import { columnNamed, quoteColumn } from "./transforms.js";

export interface OrderKey {
  /** The column's name. */
  readonly column: string;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
  /** Canonical form, for example `"my ts" desc`. */
  readonly text: string;
}

/** Most significant first. Empty: rows stay in their order. */
export type OrderBy = readonly OrderKey[];

const ORDER = /^\s*("(?:[^"]|"")*"|[^\s"(),]+)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*$/i;

/**
 * Reads `col [asc|desc] [nulls first|last]`; ascending and nulls last (also with `desc`) by default, as in DuckDB.
 * @throws SchemaError `bad_order`, `unknown_column`, `type_mismatch`
 */
export function parseOrderBy(expressions: readonly string[], schema: Schema): OrderBy {
  return expressions.map((expression): OrderKey => {
    const match = ORDER.exec(expression);
    if (!match) {
      throw new SchemaError(
        "bad_order",
        `cannot read the order ${JSON.stringify(expression)}: write col, col desc or col nulls first; quote names as "my col"`,
        { subject: expression },
      );
    }
    const field = columnNamed(match[1]!, schema);
    if (field.type.kind === "list" || field.type.kind === "map" || field.type.kind === "struct") {
      throw new SchemaError(
        "type_mismatch",
        `cannot order by the column ${JSON.stringify(field.name)} of type ${formatType(field.type)}: choose a column of single values`,
        { subject: field.name },
      );
    }
    const descending = match[2]?.toLowerCase() === "desc";
    const nullsFirst = match[3]?.toLowerCase() === "first";
    const text = `${quoteColumn(field.name)}${descending ? " desc" : ""}${nullsFirst ? " nulls first" : ""}`;
    return { column: field.name, descending, nullsFirst, text };
  });
}

/**
 * The rows of a batch in the wanted order, equal ones as they came (stable); undefined when they are in order already.
 * Text and binary go by unsigned bytes, NaN is greater than all numbers, −0 equals 0, false is before true.
 */
export function sortedOrder(batch: RecordBatch, order: OrderBy): Uint32Array | undefined {
  const words: Uint32Array[] = [];
  for (const key of order) {
    const name = nameKey(key.column);
    const index = batch.schema.fields.findIndex((field) => nameKey(field.name) === name);
    // A column that has had no value yet is null in every row.
    if (index >= 0) words.push(...sortWords(batch.columns[index]!, key));
  }
  return isSorted(words, batch.length) ? undefined : radixSort(words, batch.length);
}

/**
 * A column as unsigned 32-bit words, most significant first, whose order is the wanted order: what a radix sort takes.
 */
function sortWords(column: Column, key: OrderKey): Uint32Array[] {
  const words = valueWords(column);
  if (key.descending) for (const word of words) for (let i = 0; i < word.length; i++) word[i] = ~word[i]!;
  if (column.validity === undefined) return words;
  const nulls = new Uint32Array(column.length);
  for (let i = 0; i < nulls.length; i++) {
    const valid = isValid(column.validity, i);
    nulls[i] = valid === key.nullsFirst ? 1 : 0;
    // What lies under a null must not order nulls among themselves.
    if (!valid) for (const word of words) word[i] = 0;
  }
  return [nulls, ...words];
}

const SIGN = 0x80000000;

function valueWords(column: Column): Uint32Array[] {
  const { length } = column;
  switch (column.type.kind) {
    case "bool": {
      const bits = bytesOf(column.values!);
      return [Uint32Array.from({ length }, (_, i) => (bits[i >> 3]! >> (i & 7)) & 1)];
    }
    case "int8":
    case "int16":
    case "int32":
    case "date":
      return [Uint32Array.from(column.values as Int32Array, (value) => value ^ SIGN)];
    case "uint8":
    case "uint16":
    case "uint32":
      return [Uint32Array.from(column.values as Uint32Array)];
    case "float32":
      return floatWords(Float64Array.from(column.values as Float32Array));
    case "float64":
      return floatWords(column.values as Float64Array);
    case "string":
    case "json":
    case "binary":
    case "fixed":
    case "uuid":
      return [byteRanks(column)];
    default: {
      // 64-bit integers and times, 128-bit decimals: little-endian words, the top one signed but for uint64.
      const source = wordsOf(column.values!);
      const perValue = valueBytes(column.type) >>> 2;
      const flip = column.type.kind === "uint64" ? 0 : SIGN;
      return Array.from({ length: perValue }, (_, w) => {
        const at = perValue - 1 - w;
        const out = new Uint32Array(length);
        for (let i = 0; i < length; i++) out[i] = source[i * perValue + at]! ^ (w === 0 ? flip : 0);
        return out;
      });
    }
  }
}

/** IEEE 754 doubles in total order: all bits flipped when negative, else the sign bit alone. */
function floatWords(values: Float64Array): Uint32Array[] {
  const source = wordsOf(values);
  const high = new Uint32Array(values.length);
  const low = new Uint32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (Number.isNaN(value)) {
      high[i] = low[i] = 0xffffffff;
    } else if (value === 0) {
      high[i] = SIGN;
    } else {
      const flip = value < 0 ? 0xffffffff : 0;
      high[i] = source[2 * i + 1]! ^ (flip | SIGN);
      low[i] = source[2 * i]! ^ flip;
    }
  }
  return [high, low];
}

/** Bytes of a value that a radix sort takes at once: six of them, or their end, are below 2^53. */
const PREFIX_BYTES = 6;

/**
 * Ranks byte strings: equal ones share a rank. Sorted by the bytes behind what all values begin with; only values that
 * agree in those are compared.
 */
function byteRanks(column: Column): Uint32Array {
  const { length } = column;
  const ranks = new Uint32Array(length);
  if (length === 0) return ranks;
  const bytes = bytesOf(column.values!);
  const width = valueBytes(column.type);
  const offsets = column.offsets ?? Int32Array.from({ length: length + 1 }, (_, i) => i * width);
  const skipped = sharedPrefix(bytes, offsets, column);
  const high = new Uint32Array(length);
  const low = new Uint32Array(length);
  let longest = 0;
  for (let i = 0; i < length; i++) {
    const start = offsets[i]! + skipped;
    const end = offsets[i + 1]!;
    longest = Math.max(longest, end - start);
    // A missing byte sorts before any other.
    let prefix = 0;
    for (let k = 0; k < PREFIX_BYTES; k++) prefix = prefix * 257 + (start + k < end ? bytes[start + k]! + 1 : 0);
    high[i] = Math.floor(prefix / 2 ** 32);
    low[i] = prefix;
  }
  const order = radixSort([high, low], length);
  const samePrefix = (a: number, b: number): boolean => high[a] === high[b] && low[a] === low[b];
  const decided = longest <= PREFIX_BYTES;
  let rank = 0;
  for (let first = 0; first < length; ) {
    let end = first + 1;
    while (end < length && samePrefix(order[first]!, order[end]!)) end++;
    const group = order.subarray(first, end);
    if (!decided && group.length > 1) group.sort((a, b) => compareBytes(bytes, offsets, a, b));
    for (let i = 0; i < group.length; i++) {
      if (i > 0 && !decided && compareBytes(bytes, offsets, group[i - 1]!, group[i]!) !== 0) rank++;
      ranks[group[i]!] = rank;
    }
    rank++;
    first = end;
  }
  return ranks;
}

/** Bytes that all values begin with. Nulls do not count: they are empty, or hold anything. */
function sharedPrefix(bytes: Uint8Array, offsets: Int32Array, column: Column): number {
  let first = -1;
  let shared = 0;
  for (let i = 0; i < column.length; i++) {
    if (!isValid(column.validity, i)) continue;
    const start = offsets[i]!;
    if (first < 0) {
      first = start;
      shared = offsets[i + 1]! - start;
      continue;
    }
    shared = Math.min(shared, offsets[i + 1]! - start);
    let same = 0;
    while (same < shared && bytes[start + same] === bytes[first + same]) same++;
    shared = same;
    if (shared === 0) break;
  }
  return shared;
}

function compareBytes(bytes: Uint8Array, offsets: Int32Array, a: number, b: number): number {
  const startA = offsets[a]!;
  const startB = offsets[b]!;
  const lengthA = offsets[a + 1]! - startA;
  const lengthB = offsets[b + 1]! - startB;
  const shared = Math.min(lengthA, lengthB);
  for (let i = 0; i < shared; i++) {
    const difference = bytes[startA + i]! - bytes[startB + i]!;
    if (difference !== 0) return difference;
  }
  return lengthA - lengthB;
}

function isSorted(words: readonly Uint32Array[], length: number): boolean {
  next: for (let i = 1; i < length; i++) {
    for (const word of words) {
      const before = word[i - 1]!;
      const value = word[i]!;
      if (before < value) continue next;
      if (before > value) return false;
    }
  }
  return true;
}

/** Bits of a digit; an 11-bit table stays in the first-level cache. */
const DIGIT_BITS = 11;
const DIGITS = 1 << DIGIT_BITS;

/** Stable least-significant-digit radix sort. Digits that are equal in all rows cost one counting pass. */
function radixSort(words: readonly Uint32Array[], length: number): Uint32Array {
  let rows = Uint32Array.from({ length }, (_, i) => i);
  let other = new Uint32Array(length);
  const counts = new Uint32Array(DIGITS);
  for (let w = words.length - 1; w >= 0; w--) {
    const word = words[w]!;
    for (let shift = 0; shift < 32; shift += DIGIT_BITS) {
      counts.fill(0);
      for (let i = 0; i < length; i++) counts[(word[i]! >>> shift) & (DIGITS - 1)]!++;
      if (counts[(word[0]! >>> shift) & (DIGITS - 1)] === length) continue;
      let start = 0;
      for (let digit = 0; digit < DIGITS; digit++) {
        const count = counts[digit]!;
        counts[digit] = start;
        start += count;
      }
      for (let i = 0; i < length; i++) {
        const row = rows[i]!;
        other[counts[(word[row]! >>> shift) & (DIGITS - 1)]!++] = row;
      }
      [rows, other] = [other, rows];
    }
  }
  return rows;
}
