/** LZ4 frames (LZ4 frame format 1.6), as Arrow compresses buffers by default elsewhere. Checksums are not verified. */

import { InvalidInputError } from "./errors.js";

const MAGIC = 0x184d2204;
/** A byte of a block stands for at most 255 bytes of output. */
const MAX_RATIO = 256;

/**
 * Decompresses one frame into `size` bytes.
 * @throws InvalidInputError `bad_lz4`
 */
export function decompressLz4Frame(frame: Uint8Array, size: number): Uint8Array {
  if (size > (frame.length + 1) * MAX_RATIO) throw badLz4();
  const out = new Uint8Array(size);
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (frame.length < 7 || view.getUint32(0, true) !== MAGIC) throw badLz4();
  const flags = frame[4]!;
  if (flags >> 6 !== 1) throw badLz4();
  const hasBlockChecksums = (flags & 0x10) !== 0;
  const hasContentSize = (flags & 0x08) !== 0;
  const hasDictionary = (flags & 0x01) !== 0;
  let at = 7 + (hasContentSize ? 8 : 0) + (hasDictionary ? 4 : 0);
  let written = 0;
  for (;;) {
    if (at + 4 > frame.length) throw badLz4();
    const header = view.getUint32(at, true);
    at += 4;
    if (header === 0) break;
    const end = at + (header & 0x7fffffff);
    if (end > frame.length) throw badLz4();
    if (header > 0x7fffffff) {
      // A block that did not shrink is stored.
      if (written + end - at > size) throw badLz4();
      out.set(frame.subarray(at, end), written);
      written += end - at;
    } else {
      written = decompressBlock(frame, at, end, out, written);
    }
    at = end + (hasBlockChecksums ? 4 : 0);
  }
  if (written !== size) throw badLz4();
  return out;
}

/** Sequences of literals and of copies from what is decompressed already, which may be from an earlier block. */
function decompressBlock(block: Uint8Array, start: number, end: number, out: Uint8Array, written: number): number {
  let at = start;
  let to = written;
  while (at < end) {
    const token = block[at++]!;
    let literals = token >> 4;
    if (literals === 15) {
      let more = 255;
      while (more === 255) {
        if (at >= end) throw badLz4();
        more = block[at++]!;
        literals += more;
      }
    }
    if (at + literals > end || to + literals > out.length) throw badLz4();
    out.set(block.subarray(at, at + literals), to);
    at += literals;
    to += literals;
    // The last sequence has literals only.
    if (at === end) break;
    if (at + 2 > end) throw badLz4();
    const distance = block[at]! | (block[at + 1]! << 8);
    at += 2;
    let length = (token & 15) + 4;
    if (length === 19) {
      let more = 255;
      while (more === 255) {
        if (at >= end) throw badLz4();
        more = block[at++]!;
        length += more;
      }
    }
    if (distance === 0 || distance > to || to + length > out.length) throw badLz4();
    // Byte by byte: a copy may overlap what it writes, to repeat it.
    for (let from = to - distance; length > 0; length--) out[to++] = out[from++]!;
  }
  return to;
}

function badLz4(): InvalidInputError {
  return new InvalidInputError("bad_lz4", "the LZ4-compressed bytes are damaged");
}
