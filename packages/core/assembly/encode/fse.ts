/** Finite state entropy: the tables and streams of RFC 8878, section 4.1. A table has at most 2^9 states, 64 symbols. */

/** A table: its log, the next states, and for each symbol two numbers that tell bits and place of a next state. */
const LOG: usize = 0;
const STATES: usize = 8;
const SYMBOLS: usize = STATES + 2 * 512;
export const FSE_BYTES: usize = SYMBOLS + 8 * 64;

/** The symbol of each state, while a table is built. */
const spread = memory.data(512, 16);
const starts = memory.data(65 * 4, 16);

export function log2(value: u32): i32 {
  return 31 - <i32>clz(value);
}

/** Bits written so far that do not fill a byte yet, and how many. A stream is read from its end to its beginning. */
export let bits: u64 = 0;
export let bitCount: i32 = 0;

export function beginBits(): void {
  bits = 0;
  bitCount = 0;
}

/** Appends the low `count` bits; at most 56 between two flushes. */
// @ts-ignore: decorator
@inline
export function addBits(value: u64, count: i32): void {
  bits |= (value & ((<u64>1 << count) - 1)) << bitCount;
  bitCount += count;
}

/** Writes the whole bytes; clobbers eight. */
// @ts-ignore: decorator
@inline
export function flushBits(out: usize): usize {
  store<u64>(out, bits);
  const whole = bitCount & ~7;
  bits >>= whole;
  bitCount &= 7;
  return out + (whole >> 3);
}

/** A one marks the end. */
export function endBits(out: usize): usize {
  addBits(1, 1);
  out = flushBits(out);
  return bitCount > 0 ? out + 1 : out;
}

/**
 * Scales the counts of symbols 0 … `last` (32 bits each) to a sum of 2^`log` (16 bits each); what occurs stays above 0.
 * There are at most 2^`log` symbols.
 */
export function normalize(counts: usize, last: i32, total: i32, log: i32, norm: usize): void {
  let rest = 1 << log;
  let largest = 0;
  let most = 0;
  for (let s = 0; s <= last; s++) {
    const count = load<u32>(counts + (s << 2));
    const scaled = count == 0 ? 0 : max(1, <i32>(((<u64>count << log) + (total >> 1)) / total));
    store<i16>(norm + (s << 1), <i16>scaled);
    rest -= scaled;
    if (scaled > most) {
      most = scaled;
      largest = s;
    }
  }
  // Rounding errors go to the most frequent symbol, or, if it cannot bear them, are taken where there is most.
  if (most + rest >= most >> 1 && most + rest >= 1) {
    store<i16>(norm + (largest << 1), <i16>(most + rest));
    return;
  }
  for (; rest < 0; rest++) {
    let from = 0;
    for (let s = 1; s <= last; s++) if (load<i16>(norm + (s << 1)) > load<i16>(norm + (from << 1))) from = s;
    store<i16>(norm + (from << 1), load<i16>(norm + (from << 1)) - 1);
  }
}

/** A log for `total` symbols up to `last`: smaller tables are shorter to write. */
export function tableLog(most: i32, total: i32, last: i32): i32 {
  const least = min(log2(total) + 1, log2(max(1, last)) + 2);
  return max(5, max(least, min(most, log2(max(1, total - 1)) - 2)));
}

/** Builds a table from normalized counts; −1 stands for less than one. */
export function buildTable(norm: usize, last: i32, log: i32, table: usize): void {
  const size = 1 << log;
  store<i32>(table, log, LOG);
  let high = size - 1;
  let start = 0;
  for (let s = 0; s <= last; s++) {
    const count = <i32>load<i16>(norm + (s << 1));
    store<i32>(starts + (s << 2), start);
    if (count < 0) {
      store<u8>(spread + high--, <u8>s);
      start++;
    } else start += count;
  }
  const step = (size >> 1) + (size >> 3) + 3;
  let position = 0;
  for (let s = 0; s <= last; s++) {
    const count = <i32>load<i16>(norm + (s << 1));
    for (let n = 0; n < count; n++) {
      store<u8>(spread + position, <u8>s);
      do position = (position + step) & (size - 1);
      while (position > high);
    }
  }
  for (let state = 0; state < size; state++) {
    const at = starts + ((<usize>load<u8>(spread + state)) << 2);
    const index = load<i32>(at);
    store<u16>(table + (index << 1), <u16>(size + state), STATES);
    store<i32>(at, index + 1);
  }
  let total = 0;
  for (let s = 0; s <= last; s++) {
    const count = <i32>load<i16>(norm + (s << 1));
    const at = table + (s << 3);
    if (count == 0) continue;
    if (count == 1 || count == -1) {
      store<i32>(at, total - 1, SYMBOLS);
      store<i32>(at, (log << 16) - size, SYMBOLS + 4);
      total++;
    } else {
      const most = log - log2(count - 1);
      store<i32>(at, total - count, SYMBOLS);
      store<i32>(at, (most << 16) - (count << most), SYMBOLS + 4);
      total += count;
    }
  }
}

/** A table of one symbol, which takes no bits. */
export function buildSingle(symbol: i32, table: usize): void {
  store<i32>(table, 0, LOG);
  store<u16>(table, 1, STATES);
  const at = table + (symbol << 3);
  store<i32>(at, -1, SYMBOLS);
  store<i32>(at, -1, SYMBOLS + 4);
}

/** The state to begin with. */
export function firstState(table: usize, symbol: i32): u32 {
  const at = table + (symbol << 3);
  const delta = load<u32>(at, SYMBOLS + 4);
  const count = (delta + (1 << 15)) >> 16;
  const value = (count << 16) - delta;
  return load<u16>(table + (<usize>((<i32>(value >> count)) + load<i32>(at, SYMBOLS)) << 1), STATES);
}

/** Writes what leads from the next state to this one, and returns it. */
// @ts-ignore: decorator
@inline
export function nextState(table: usize, state: u32, symbol: i32): u32 {
  const at = table + (symbol << 3);
  const count = (state + load<u32>(at, SYMBOLS + 4)) >> 16;
  addBits(state, count);
  return load<u16>(table + (<usize>((<i32>(state >> count)) + load<i32>(at, SYMBOLS)) << 1), STATES);
}

// @ts-ignore: decorator
@inline
export function lastState(table: usize, state: u32): void {
  addBits(state, load<i32>(table, LOG));
}

/** Writes normalized counts, none of them −1 (RFC 8878, 4.1.1). */
export function writeCounts(out: usize, norm: usize, last: i32, log: i32): usize {
  beginBits();
  addBits(log - 5, 4);
  const size = 1 << log;
  let remaining = size + 1;
  let threshold = size;
  let width = log + 1;
  let symbol = 0;
  let zero = false;
  while (symbol <= last && remaining > 1) {
    if (zero) {
      let start = symbol;
      while (symbol <= last && load<i16>(norm + (symbol << 1)) == 0) symbol++;
      if (symbol > last) break;
      for (; symbol >= start + 3; start += 3) {
        addBits(3, 2);
        out = flushBits(out);
      }
      addBits(symbol - start, 2);
    }
    let count = <i32>load<i16>(norm + (symbol++ << 1));
    const most = 2 * threshold - 1 - remaining;
    remaining -= count;
    count++;
    zero = count == 1;
    if (count >= threshold) count += most;
    addBits(count, width - i32(count < most));
    while (remaining < threshold) {
      width--;
      threshold >>= 1;
    }
    out = flushBits(out);
  }
  out = flushBits(out);
  if (bitCount == 0) return out;
  store<u8>(out, <u8>bits);
  return out + 1;
}
