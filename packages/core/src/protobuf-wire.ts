/** The wire format of protobuf messages: varints, tags, and what is to be skipped. */

import { MAX_DEPTH, RowFault } from "./row-batches.js";

/** How a value is written: the lower three bits of its tag. */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const;

/** Bytes of the longest varint: 64 bits, seven in each. */
const MAX_VARINT_BYTES = 10;

/** A message that breaks off: the usual sign of a payload that was cut, or that is no protobuf at all. */
function truncated(at: number): RowFault {
  return new RowFault("form", "truncated", `byte ${at}: the message ends within a value`);
}

export function badProtobuf(at: number, what: string): RowFault {
  return new RowFault("form", "bad_protobuf", `byte ${at}: ${what}`);
}

/** Reads one payload. Positions are bytes of the payload, from 0; nothing is read at or beyond {@link end}. */
export class WireReader {
  bytes: Uint8Array = new Uint8Array(0);
  at = 0;
  end = 0;
  /** The halves of the last {@link varint}, as signed 32-bit integers. */
  low = 0;
  high = 0;

  varint(): void {
    const { bytes, end } = this;
    const start = this.at;
    let low = 0;
    let high = 0;
    for (let i = 0; i < MAX_VARINT_BYTES; i++) {
      if (start + i >= end) throw truncated(start);
      const byte = bytes[start + i]!;
      if (i < 4) low |= (byte & 0x7f) << (7 * i);
      else if (i === 4) {
        low |= byte << 28;
        high = (byte & 0x7f) >> 4;
      } else high |= (byte & 0x7f) << (7 * i - 32);
      if (byte < 0x80) {
        if (i === MAX_VARINT_BYTES - 1 && byte > 1) break;
        this.at = start + i + 1;
        this.low = low;
        this.high = high;
        return;
      }
    }
    throw badProtobuf(start, "a varint has more than 64 bits");
  }

  /** A tag: field number × 8 + wire type. */
  tag(): number {
    const start = this.at;
    this.varint();
    const tag = this.low >>> 0;
    if (this.high !== 0 || tag < 8) throw badProtobuf(start, "there is no field of such a number");
    return tag;
  }

  /** Moves behind `size` bytes. */
  advance(size: number): void {
    if (size > this.end - this.at) throw truncated(this.at);
    this.at += size;
  }

  /** Reads a length that the rest of the message can hold; nothing is allocated for it. */
  length(): number {
    const start = this.at;
    this.varint();
    const size = this.low >>> 0;
    if (this.high === 0 && size <= this.end - this.at) return size;
    throw new RowFault("form", "truncated", `byte ${start}: a length is more than is left of the message`);
  }

  /** Moves behind the value of a tag that was read. */
  skip(tag: number): void {
    switch (tag & 7) {
      case WIRE.varint:
        this.varint();
        break;
      case WIRE.fixed64:
        this.advance(8);
        break;
      case WIRE.bytes:
        this.advance(this.length());
        break;
      case WIRE.fixed32:
        this.advance(4);
        break;
      case WIRE.startGroup:
        this.#skipGroup(tag);
        break;
      case WIRE.endGroup:
        throw badProtobuf(this.at, "a group ends that did not begin");
      default:
        throw badProtobuf(this.at, "there is no such wire type");
    }
  }

  /** Groups may be in each other, each closed by its own number. */
  #skipGroup(tag: number): void {
    const open = [tag];
    while (open.length > 0) {
      const start = this.at;
      if (start === this.end) throw truncated(start);
      const next = this.tag();
      if ((next & 7) === WIRE.startGroup) {
        if (open.length === MAX_DEPTH) {
          throw new RowFault("form", "too_deep", `byte ${start}: groups are nested deeper than ${MAX_DEPTH} levels`);
        }
        open.push(next);
      } else if ((next & 7) !== WIRE.endGroup) this.skip(next);
      else if (next >>> 3 !== open.pop()! >>> 3) throw badProtobuf(start, "a group ends with another one's number");
    }
  }
}
