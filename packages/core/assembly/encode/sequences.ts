/** The sequences of a zstd block (RFC 8878, 3.1.1.3.2): how many literals to copy, then how much from how far back. */

import {
  addBits,
  beginBits,
  buildSingle,
  buildTable,
  endBits,
  firstState,
  flushBits,
  lastState,
  log2,
  nextState,
  normalize,
  tableLog,
  writeCounts,
} from "./fse";

/** A sequence: literals, length of the match less 3, distance + 3 or 1 … 3 for a repeated one; 32 bits each. */
export const SEQUENCE_BYTES: usize = 12;
export const MIN_MATCH = 3;

// prettier-ignore
const LITERAL_CODES = memory.data<u8>([
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 20, 20, 21, 21, 21, 21,
  22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 23, 23, 23, 23, 23,
  24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24,
]);
// prettier-ignore
const LITERAL_BITS = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
]);
// prettier-ignore
const MATCH_CODES = memory.data<u8>([
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
  32, 32, 33, 33, 34, 34, 35, 35, 36, 36, 36, 36, 37, 37, 37, 37, 38, 38, 38, 38, 38, 38, 38, 38,
  39, 39, 39, 39, 39, 39, 39, 39, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40,
  41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41,
  42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42,
]);
// prettier-ignore
const MATCH_BITS = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
]);

/** Distributions that need not be written (RFC 8878, 3.1.1.3.2.2), of 2^6, 2^5 and 2^6 states. */
// prettier-ignore
const LITERAL_NORM = memory.data<i16>([
  4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1,
]);
// prettier-ignore
const OFFSET_NORM = memory.data<i16>([
  1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
]);
// prettier-ignore
const MATCH_NORM = memory.data<i16>([
  1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
  1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
]);

const counts = memory.data(64 * 4, 16);
const norm = memory.data(64 * 2, 16);
const literalTable = memory.data(1552, 16);
const offsetTable = memory.data(1552, 16);
const matchTable = memory.data(1552, 16);

/** How the last table was written: predefined, as one symbol, or in full. */
let mode: i32 = 0;

/** Writes the sequences section; `codes` has room for three bytes for each sequence. */
export function writeSequences(out: usize, sequences: usize, size: i32, codes: usize): usize {
  if (size < 128) {
    store<u8>(out++, <u8>size);
    if (size == 0) return out;
  } else if (size < 0x7f00) {
    store<u8>(out, <u8>((size >> 8) + 128));
    store<u8>(out, <u8>size, 1);
    out += 2;
  } else {
    store<u8>(out, 255);
    store<u16>(out, <u16>(size - 0x7f00), 1);
    out += 3;
  }
  const literalCodes = codes;
  const offsetCodes = codes + size;
  const matchCodes = codes + 2 * size;
  for (let i = 0; i < size; i++) {
    const at = sequences + <usize>i * SEQUENCE_BYTES;
    const literals = load<u32>(at);
    const match = load<u32>(at, 4);
    store<u8>(literalCodes + i, <u8>(literals < 64 ? load<u8>(LITERAL_CODES + literals) : log2(literals) + 19));
    store<u8>(matchCodes + i, <u8>(match < 128 ? load<u8>(MATCH_CODES + match) : log2(match) + 36));
    store<u8>(offsetCodes + i, <u8>log2(load<u32>(at, 8)));
  }
  const modes = out++;
  out = writeTable(out, literalCodes, size, LITERAL_NORM, 35, 6, 9, literalTable);
  let all = mode << 6;
  out = writeTable(out, offsetCodes, size, OFFSET_NORM, 28, 5, 8, offsetTable);
  all |= mode << 4;
  out = writeTable(out, matchCodes, size, MATCH_NORM, 52, 6, 9, matchTable);
  all |= mode << 2;
  store<u8>(modes, <u8>all);

  beginBits();
  let index = size - 1;
  let matchState = firstState(matchTable, load<u8>(matchCodes + index));
  let offsetState = firstState(offsetTable, load<u8>(offsetCodes + index));
  let literalState = firstState(literalTable, load<u8>(literalCodes + index));
  while (true) {
    const at = sequences + <usize>index * SEQUENCE_BYTES;
    addBits(load<u32>(at), load<u8>(LITERAL_BITS + load<u8>(literalCodes + index)));
    addBits(load<u32>(at, 4), load<u8>(MATCH_BITS + load<u8>(matchCodes + index)));
    addBits(load<u32>(at, 8), load<u8>(offsetCodes + index));
    out = flushBits(out);
    if (--index < 0) break;
    offsetState = nextState(offsetTable, offsetState, load<u8>(offsetCodes + index));
    matchState = nextState(matchTable, matchState, load<u8>(matchCodes + index));
    literalState = nextState(literalTable, literalState, load<u8>(literalCodes + index));
    out = flushBits(out);
  }
  lastState(matchTable, matchState);
  lastState(offsetTable, offsetState);
  lastState(literalTable, literalState);
  return endBits(flushBits(out));
}

/** Chooses, writes and builds the table of one kind of code. */
function writeTable(
  out: usize,
  codes: usize,
  size: i32,
  known: usize,
  knownLast: i32,
  knownLog: i32,
  maxLog: i32,
  table: usize,
): usize {
  memory.fill(counts, 0, 256);
  for (let i = 0; i < size; i++) {
    const at = counts + ((<usize>load<u8>(codes + i)) << 2);
    store<u32>(at, load<u32>(at) + 1);
  }
  let largest = 0;
  let last = 0;
  for (let code = 0; code < 64; code++) {
    const count = load<i32>(counts + (code << 2));
    if (count == 0) continue;
    last = code;
    largest = max(largest, count);
  }
  if (largest == size && size > 2) {
    mode = 1;
    buildSingle(last, table);
    store<u8>(out, <u8>last);
    return out + 1;
  }
  // A table of few sequences, or of codes that are all rare, would cost more than it saves.
  if (size < (9 << knownLog) >> 3 || largest < size >> (knownLog - 1)) {
    mode = 0;
    buildTable(known, knownLast, knownLog, table);
    return out;
  }
  mode = 2;
  const log = min(maxLog, tableLog(maxLog, size, last));
  normalize(counts, last, size, log, norm);
  buildTable(norm, last, log, table);
  return writeCounts(out, norm, last, log);
}
