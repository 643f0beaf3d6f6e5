/** The literals of a zstd block (RFC 8878, 3.1.1.3.1): Huffman codes of at most eleven bits, in one stream or in four. */

import {
  beginBits,
  buildTable,
  endBits,
  firstState,
  flushBits,
  lastState,
  nextState,
  normalize,
  tableLog,
  writeCounts,
} from "./fse";

const MAX_BITS = 11;
/** Fewer literals are not worth a table. */
const MIN_LITERALS = 64;
/** Pairs of bytes get codes of their own where there are this many literals for each pair that may occur. */
const LITERALS_PER_PAIR = 6;

/** Bytes of scratch memory: 32 bits for each pair of bytes. */
export const PAIRS_BYTES: usize = 4 << 16;

/** How often each byte occurs: four counters each, so that equal bytes do not wait for each other. */
const counts = memory.data(4 * 256 * 4, 16);
/** Code lengths; codes with their lengths in the low eight bits. */
const lengths = memory.data(256, 16);
const codes = memory.data(256 * 4, 16);
/** Leaves and inner nodes of the tree, by rising counts: counts, parents, depths. */
const nodeCounts = memory.data(512 * 4, 16);
const parents = memory.data(512 * 2, 16);
const depths = memory.data(512, 16);
const symbols = memory.data(256, 16);
/** How many different bytes there are. */
let leaves: i32 = 0;
/** Weights and their table. */
const weights = memory.data(256, 16);
const weightCounts = memory.data(16 * 4, 16);
const weightNorm = memory.data(16 * 2, 16);
const weightTable = memory.data(1552, 16);

/** Writes the literals section; `pairs` is scratch memory. */
export function writeLiterals(out: usize, literals: usize, size: i32, pairs: usize): usize {
  if (size < MIN_LITERALS) return writeRaw(out, literals, size);
  const largest = countBytes(literals, size);
  if (largest == size) {
    const end = writeSize(out, 1, size);
    store<u8>(end, load<u8>(literals));
    return end + 1;
  }
  // Flat: codes would all be about eight bits.
  if (largest <= (size >> 7) + 4) return writeRaw(out, literals, size);
  const last = buildLengths();
  const streams = size < 256 ? 1 : 4;
  const header: usize = size < 1024 ? 3 : size < 16384 ? 4 : 5;
  let end = writeWeights(out + header, last);
  if (end == 0) return writeRaw(out, literals, size);
  assignCodes(last);
  const paired = size >= LITERALS_PER_PAIR * leaves * leaves;
  if (paired) pairCodes(pairs);
  if (streams == 1) {
    end = writeStream(end, literals, literals + size);
  } else {
    const jumps = end;
    const part = (size + 3) >> 2;
    end += 6;
    for (let s = 0; s < 4; s++) {
      const from = literals + s * part;
      const to = s == 3 ? literals + size : from + part;
      const next = paired ? writePairs(end, from, to, pairs) : writeStream(end, from, to);
      if (s < 3) store<u16>(jumps + 2 * s, <u16>(next - end));
      end = next;
    }
  }
  const packed = <i32>(end - out - header);
  if (packed >= size - (size >> 6) - 2) return writeRaw(out, literals, size);
  if (header == 3) {
    const format = streams == 1 ? 0 : 1;
    const value = 2 | (format << 2) | (size << 4) | (packed << 14);
    store<u16>(out, <u16>value);
    store<u8>(out, <u8>(value >> 16), 2);
  } else if (header == 4) {
    store<u32>(out, 2 | (2 << 2) | (size << 4) | (packed << 18));
  } else {
    const value: u64 = 2 | (3 << 2) | (<u64>size << 4) | (<u64>packed << 22);
    store<u32>(out, <u32>value);
    store<u8>(out, <u8>(value >> 32), 4);
  }
  return end;
}

function writeRaw(out: usize, literals: usize, size: i32): usize {
  const end = writeSize(out, 0, size);
  memory.copy(end, literals, size);
  return end + size;
}

/** The header of raw (0) or repeated (1) literals. */
function writeSize(out: usize, type: i32, size: i32): usize {
  if (size < 32) {
    store<u8>(out, <u8>(type | (size << 3)));
    return out + 1;
  }
  if (size < 4096) {
    store<u16>(out, <u16>(type | (1 << 2) | (size << 4)));
    return out + 2;
  }
  store<u16>(out, <u16>(type | (3 << 2) | (size << 4)));
  store<u8>(out, <u8>(size >> 12), 2);
  return out + 3;
}

/** Returns the count of the most frequent byte. */
function countBytes(from: usize, size: i32): i32 {
  memory.fill(counts, 0, 4 * 1024);
  const end = from + size;
  let at = from;
  for (; at + 8 <= end; at += 8) {
    const word = load<u64>(at);
    count(word & 0xff, 0);
    count((word >> 8) & 0xff, 1024);
    count((word >> 16) & 0xff, 2048);
    count((word >> 24) & 0xff, 3072);
    count((word >> 32) & 0xff, 0);
    count((word >> 40) & 0xff, 1024);
    count((word >> 48) & 0xff, 2048);
    count(word >> 56, 3072);
  }
  for (; at < end; at++) count(<u64>load<u8>(at), 0);
  let largest = 0;
  for (let i = 0; i < 1024; i += 4) {
    const place = counts + i;
    const sum = load<i32>(place) + load<i32>(place, 1024) + load<i32>(place, 2048) + load<i32>(place, 3072);
    store<i32>(place, sum);
    largest = max(largest, sum);
  }
  return largest;
}

// @ts-ignore: decorator
@inline
function count(byte: u64, table: usize): void {
  const at = counts + ((<usize>byte) << 2) + table;
  store<u32>(at, load<u32>(at) + 1);
}

/** Code lengths of the bytes counted, at least two. Returns the last byte that has one. */
function buildLengths(): i32 {
  memory.fill(lengths, 0, 256);
  sortLeaves();
  buildTree();
  // What codes take of the space of the longest codes: exactly all of it in the end.
  let space = 0;
  for (let i = 0; i < leaves; i++) {
    const depth = min(MAX_BITS, <i32>load<u8>(depths + i));
    store<u8>(depths + i, <u8>depth);
    space += 1 << (MAX_BITS - depth);
  }
  // Too deep ones were cut: others are made longer, the rarest of the longest first.
  while (space > 1 << MAX_BITS) {
    let longest = 0;
    let at = 0;
    for (let i = 0; i < leaves; i++) {
      const depth = <i32>load<u8>(depths + i);
      if (depth < MAX_BITS && depth > longest) {
        longest = depth;
        at = i;
      }
    }
    store<u8>(depths + at, <u8>(longest + 1));
    space -= 1 << (MAX_BITS - longest - 1);
  }
  // The longest code always fits into what that leaves: the most frequent of them gets shorter.
  while (space < 1 << MAX_BITS) {
    let longest = 0;
    let at = 0;
    for (let i = 0; i < leaves; i++) {
      const depth = <i32>load<u8>(depths + i);
      if (depth >= longest) {
        longest = depth;
        at = i;
      }
    }
    store<u8>(depths + at, <u8>(longest - 1));
    space += 1 << (MAX_BITS - longest);
  }
  let last = 0;
  for (let i = 0; i < leaves; i++) {
    const symbol = <i32>load<u8>(symbols + i);
    store<u8>(lengths + symbol, load<u8>(depths + i));
    last = max(last, symbol);
  }
  return last;
}

/** Bytes that occur, by rising counts. */
function sortLeaves(): void {
  leaves = 0;
  for (let symbol = 0; symbol < 256; symbol++) {
    const value = load<u32>(counts + (symbol << 2));
    if (value == 0) continue;
    let at = leaves++;
    for (; at > 0 && load<u32>(nodeCounts + ((at - 1) << 2)) > value; at--) {
      store<u32>(nodeCounts + (at << 2), load<u32>(nodeCounts + ((at - 1) << 2)));
      store<u8>(symbols + at, load<u8>(symbols + at - 1));
    }
    store<u32>(nodeCounts + (at << 2), value);
    store<u8>(symbols + at, <u8>symbol);
  }
}

/** Joins the two rarest nodes until one is left, then tells the depths of the leaves. */
function buildTree(): void {
  let leaf = 0;
  let inner = leaves;
  const root = 2 * leaves - 2;
  for (let node = leaves; node <= root; node++) {
    let sum: u32 = 0;
    for (let child = 0; child < 2; child++) {
      const takeLeaf =
        leaf < leaves &&
        (inner >= node || load<u32>(nodeCounts + (leaf << 2)) <= load<u32>(nodeCounts + (inner << 2)));
      const at = takeLeaf ? leaf++ : inner++;
      sum += load<u32>(nodeCounts + (at << 2));
      store<u16>(parents + (at << 1), <u16>node);
    }
    store<u32>(nodeCounts + (node << 2), sum);
  }
  store<u8>(depths + root, 0);
  for (let node = root - 1; node >= 0; node--) {
    store<u8>(depths + node, load<u8>(depths + load<u16>(parents + (node << 1))) + 1);
  }
}

/** Codes of one length are numbered by byte, longer codes are below shorter ones. */
function assignCodes(last: i32): void {
  for (let length = MAX_BITS, code = 0; length > 0; length--) {
    for (let symbol = 0; symbol <= last; symbol++) {
      if (<i32>load<u8>(lengths + symbol) != length) continue;
      store<u32>(codes + (symbol << 2), (code++ << 8) | length);
    }
    code >>= 1;
  }
}

/** The weights of all bytes before the last one, whose weight follows from the others. Returns 0 if it cannot. */
function writeWeights(out: usize, last: i32): usize {
  let longest = 0;
  for (let symbol = 0; symbol <= last; symbol++) longest = max(longest, <i32>load<u8>(lengths + symbol));
  for (let symbol = 0; symbol < last; symbol++) {
    const length = <i32>load<u8>(lengths + symbol);
    store<u8>(weights + symbol, <u8>(length == 0 ? 0 : longest + 1 - length));
  }
  const end = writeWeightStream(out + 1, last);
  const size = <i32>(end - out - 1);
  if (end != 0 && size < 128 && (last > 128 || size < (last + 1) >> 1)) {
    store<u8>(out, <u8>size);
    return end;
  }
  if (last > 128) return 0;
  // Four bits each.
  store<u8>(out, <u8>(127 + last));
  store<u8>(weights + last, 0);
  for (let symbol = 0; symbol < last; symbol += 2) {
    store<u8>(out + 1 + (symbol >> 1), (load<u8>(weights + symbol) << 4) | load<u8>(weights + symbol + 1));
  }
  return out + 1 + ((last + 1) >> 1);
}

/** Weights in two alternating states. Returns 0 where that is not possible. */
function writeWeightStream(out: usize, size: i32): usize {
  if (size < 3) return 0;
  memory.fill(weightCounts, 0, 64);
  let largest = 0;
  let last = 0;
  for (let i = 0; i < size; i++) {
    const weight = <i32>load<u8>(weights + i);
    const at = weightCounts + (weight << 2);
    const sum = load<i32>(at) + 1;
    store<i32>(at, sum);
    largest = max(largest, sum);
    last = max(last, weight);
  }
  if (largest == size || largest == 1) return 0;
  const log = min(6, tableLog(6, size, last));
  normalize(weightCounts, last, size, log, weightNorm);
  out = writeCounts(out, weightNorm, last, log);
  buildTable(weightNorm, last, log, weightTable);
  beginBits();
  // Weights at even places belong to the first state.
  let at = size - 1;
  let even: u32 = 0;
  let odd: u32 = 0;
  if ((at & 1) == 0) {
    even = firstState(weightTable, load<u8>(weights + at--));
    odd = firstState(weightTable, load<u8>(weights + at--));
  } else {
    odd = firstState(weightTable, load<u8>(weights + at--));
    even = firstState(weightTable, load<u8>(weights + at--));
  }
  for (; at >= 0; at--) {
    if ((at & 1) == 0) even = nextState(weightTable, even, load<u8>(weights + at));
    else odd = nextState(weightTable, odd, load<u8>(weights + at));
    out = flushBits(out);
  }
  lastState(weightTable, odd);
  lastState(weightTable, even);
  return endBits(out);
}

/** One stream, from its last byte to its first. */
function writeStream(out: usize, from: usize, to: usize): usize {
  let bits: u64 = 0;
  let count = 0;
  let at = to;
  while ((at - from) % 5 != 0) {
    const code = load<u32>(codes + ((<usize>load<u8>(--at)) << 2));
    bits |= <u64>(code >> 8) << count;
    count += code & 0xff;
  }
  store<u64>(out, bits);
  out += count >> 3;
  bits >>= count & ~7;
  count &= 7;
  while (at > from) {
    at -= 5;
    // Five codes are at most 55 bits, with up to seven that wait.
    const a = load<u32>(codes + ((<usize>load<u8>(at, 4)) << 2));
    const b = load<u32>(codes + ((<usize>load<u8>(at, 3)) << 2));
    const c = load<u32>(codes + ((<usize>load<u8>(at, 2)) << 2));
    const d = load<u32>(codes + ((<usize>load<u8>(at, 1)) << 2));
    const e = load<u32>(codes + ((<usize>load<u8>(at)) << 2));
    bits |= <u64>(a >> 8) << count;
    count += a & 0xff;
    bits |= <u64>(b >> 8) << count;
    count += b & 0xff;
    bits |= <u64>(c >> 8) << count;
    count += c & 0xff;
    bits |= <u64>(d >> 8) << count;
    count += d & 0xff;
    bits |= <u64>(e >> 8) << count;
    count += e & 0xff;
    store<u64>(out, bits);
    out += count >> 3;
    bits >>= count & ~7;
    count &= 7;
  }
  // A one marks the end.
  store<u8>(out, <u8>(bits | (<u64>1 << count)));
  return out + 1;
}

/** The codes of two bytes at once, the second one first: streams are written backwards. */
function pairCodes(pairs: usize): void {
  for (let i = 0; i < leaves; i++) {
    const second = <usize>load<u8>(symbols + i);
    const code = load<u32>(codes + (second << 2));
    const bits = code & 0xff;
    const row = pairs + (second << 10);
    for (let j = 0; j < leaves; j++) {
      const first = <usize>load<u8>(symbols + j);
      const before = load<u32>(codes + (first << 2));
      store<u32>(row + (first << 2), ((((before >> 8) << bits) | (code >> 8)) << 8) | (bits + (before & 0xff)));
    }
  }
}

/** The same stream as {@link writeStream}'s. */
function writePairs(out: usize, from: usize, to: usize, pairs: usize): usize {
  let bits: u64 = 0;
  let count = 0;
  let at = to;
  while (((at - from) & 3) != 0) {
    const code = load<u32>(codes + ((<usize>load<u8>(--at)) << 2));
    bits |= <u64>(code >> 8) << count;
    count += code & 0xff;
  }
  while (at > from) {
    at -= 4;
    // Two pairs are at most 44 bits; before them wait at most seven, or at first the 33 of three bytes.
    store<u64>(out, bits);
    out += count >> 3;
    bits >>= count & ~7;
    count &= 7;
    const b = load<u32>(pairs + ((<usize>load<u16>(at, 2)) << 2));
    const a = load<u32>(pairs + ((<usize>load<u16>(at)) << 2));
    bits |= <u64>(b >> 8) << count;
    count += b & 0xff;
    bits |= <u64>(a >> 8) << count;
    count += a & 0xff;
  }
  store<u64>(out, bits);
  out += count >> 3;
  bits >>= count & ~7;
  count &= 7;
  // A one marks the end.
  store<u8>(out, <u8>(bits | (<u64>1 << count)));
  return out + 1;
}
