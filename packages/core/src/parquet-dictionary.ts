/** Finds the distinct values of a column chunk, or gives up early where a dictionary would not pay. */

import type { EncodeMemory } from "./parquet-memory.js";

/** More would take indexes of over 16 bits, and memory that readers must hold. */
const MAX_ENTRIES = 65_536;
const MAX_BYTES = 1 << 20;

/** Arrays of 32 bits, by address. */
export interface Dictionary {
  /** Entry number of each value. */
  readonly codes: number;
  /** Where each entry was first seen. */
  readonly entries: number;
  readonly size: number;
  /** Of the entries as PLAIN. */
  readonly bytes: number;
}

/** Of values of 4 or 8 bytes, compared bit by bit. With `judge` a sample is looked at first. */
export function numberDictionary(
  memory: EncodeMemory,
  values: number,
  count: number,
  width: 4 | 8,
  judge: boolean,
): Dictionary | undefined {
  const { loops } = memory;
  const { codes, entries, slots, bits } = tableOf(memory, count);
  const limit = Math.min(MAX_ENTRIES, MAX_BYTES / width);
  const build = width === 4 ? loops.dictionary32 : loops.dictionary64;
  const size = build(values, count, judge ? 1 : 0, limit, codes, entries, slots, bits);
  return size < 0 ? undefined : { codes, entries, size, bytes: size * width };
}

/** Of byte ranges `offsets[i]` to `offsets[i + 1]`; `overhead` bytes are stored with each. */
export function bytesDictionary(
  memory: EncodeMemory,
  data: number,
  offsets: number,
  count: number,
  overhead: number,
  judge: boolean,
): Dictionary | undefined {
  const { codes, entries, slots, bits } = tableOf(memory, count);
  const size = memory.loops.dictionaryBytes(
    data,
    offsets,
    count,
    overhead,
    judge ? 1 : 0,
    MAX_ENTRIES,
    MAX_BYTES,
    codes,
    entries,
    slots,
    bits,
  );
  return size < 0 ? undefined : { codes, entries, size, bytes: Number(memory.resultInt64(0)) };
}

function tableOf(memory: EncodeMemory, count: number) {
  // One entry more than may be kept: the loop stops after it has exceeded the limit.
  const entries = Math.min(count, MAX_ENTRIES) + 1;
  // At least twice as many slots as entries.
  const bits = Math.max(4, 33 - Math.clz32(Math.min(count, MAX_ENTRIES) - 1));
  return {
    codes: memory.take(4 * count),
    entries: memory.take(4 * entries),
    slots: memory.take(16 << bits),
    bits,
  };
}
