/** Builders of the types of fixed width: see `column-builder.ts`. */

import { type ColumnBuffers, ColumnBuilder, capacity, plain } from "./column-builder.js";
import type { DataType } from "./schema.js";

/** bool, as bits. */
export class BoolBuilder extends ColumnBuilder {
  #bits: Uint8Array = new Uint8Array(0);

  append(value: boolean): void {
    const at = this.count >> 3;
    if (at >= this.#bits.length) {
      const grown = new Uint8Array(capacity(at + 1, this.#bits.length, (this.expected >> 3) + 1));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    const mask = 1 << (this.count & 7);
    if (value) this.#bits[at]! |= mask;
    else this.#bits[at]! &= ~mask;
    this.count++;
  }

  appendNull(): void {
    this.markNull();
    this.append(false);
  }

  protected finishBuffers(): ColumnBuffers {
    const bits = this.#bits.subarray(0, (this.count + 7) >> 3);
    // A row taken back may have left a bit beyond the end.
    if ((this.count & 7) !== 0) bits[bits.length - 1]! &= (1 << (this.count & 7)) - 1;
    return plain(bits);
  }

  protected clearBuffers(): void {
    this.#bits = new Uint8Array(0);
  }
}

type SmallNumbers = Int8Array | Int16Array | Uint8Array | Uint16Array | Uint32Array | Float32Array;

const SMALL_NUMBERS = {
  int8: Int8Array,
  int16: Int16Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  float32: Float32Array,
} as const;

/** int8, int16, uint8, uint16, uint32 and float32. The caller has checked the range. */
export class NumberBuilder extends ColumnBuilder {
  readonly #array: (typeof SMALL_NUMBERS)[keyof typeof SMALL_NUMBERS];
  #values: SmallNumbers;

  constructor(type: DataType, nullable: boolean) {
    super(type, nullable);
    this.#array = SMALL_NUMBERS[type.kind as keyof typeof SMALL_NUMBERS];
    this.#values = new this.#array(0);
  }

  append(value: number): void {
    if (this.count >= this.#values.length) {
      const grown = new this.#array(capacity(this.count + 1, this.#values.length, this.expected));
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.count++] = value;
  }

  appendNull(): void {
    this.markNull();
    this.append(0);
  }

  protected finishBuffers(): ColumnBuffers {
    return plain(this.#values.subarray(0, this.count));
  }

  protected clearBuffers(): void {
    this.#values = new this.#array(0);
  }
}

/** int32 and date (days). A class of its own, like the two below, because its stores stay monomorphic and fast. */
export class Int32Builder extends ColumnBuilder {
  #values: Int32Array = new Int32Array(0);

  append(value: number): void {
    if (this.count >= this.#values.length) {
      const grown = new Int32Array(capacity(this.count + 1, this.#values.length, this.expected));
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.count++] = value;
  }

  appendNull(): void {
    this.markNull();
    this.append(0);
  }

  protected finishBuffers(): ColumnBuffers {
    return plain(this.#values.subarray(0, this.count));
  }

  protected clearBuffers(): void {
    this.#values = new Int32Array(0);
  }
}

/** float64. */
export class Float64Builder extends ColumnBuilder {
  #values: Float64Array = new Float64Array(0);

  append(value: number): void {
    if (this.count >= this.#values.length) {
      const grown = new Float64Array(capacity(this.count + 1, this.#values.length, this.expected));
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.count++] = value;
  }

  appendNull(): void {
    this.markNull();
    this.append(0);
  }

  protected finishBuffers(): ColumnBuffers {
    return plain(this.#values.subarray(0, this.count));
  }

  protected clearBuffers(): void {
    this.#values = new Float64Array(0);
  }
}

/** int64, uint64, and the times and timestamps in microseconds. Written as two 32-bit halves: no BigInt per value. */
export class Int64Builder extends ColumnBuilder {
  /** Little-endian pairs: low, high. */
  #halves: Int32Array<ArrayBuffer> = new Int32Array(0);

  append(low: number, high: number): void {
    const at = this.count * 2;
    if (at >= this.#halves.length) {
      const grown = new Int32Array(capacity(this.count + 1, this.#halves.length / 2, this.expected) * 2);
      grown.set(this.#halves);
      this.#halves = grown;
    }
    this.#halves[at] = low;
    this.#halves[at + 1] = high;
    this.count++;
  }

  /** An integer of at most 53 bits. */
  appendNumber(value: number): void {
    // Stores into an Int32Array wrap modulo 2^32, which is the low half of the two's complement.
    this.append(value, Math.floor(value / 0x1_0000_0000));
  }

  /** The caller has checked the range. */
  appendBigInt(value: bigint): void {
    this.append(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  appendNull(): void {
    this.markNull();
    this.append(0, 0);
  }

  protected finishBuffers(): ColumnBuffers {
    const unsigned = this.type.kind === "uint64";
    return plain(new (unsigned ? BigUint64Array : BigInt64Array)(this.#halves.buffer, 0, this.count));
  }

  protected clearBuffers(): void {
    this.#halves = new Int32Array(0);
  }
}

/** decimal(p,s): the unscaled value as 16 bytes, two's complement, little-endian. */
export class DecimalBuilder extends ColumnBuilder {
  #words: Int32Array<ArrayBuffer> = new Int32Array(0);

  /** Four 32-bit words, least significant first. */
  append(w0: number, w1: number, w2: number, w3: number): void {
    const at = this.count * 4;
    if (at >= this.#words.length) {
      const grown = new Int32Array(capacity(this.count + 1, this.#words.length / 4, this.expected) * 4);
      grown.set(this.#words);
      this.#words = grown;
    }
    this.#words[at] = w0;
    this.#words[at + 1] = w1;
    this.#words[at + 2] = w2;
    this.#words[at + 3] = w3;
    this.count++;
  }

  appendNull(): void {
    this.markNull();
    this.append(0, 0, 0, 0);
  }

  protected finishBuffers(): ColumnBuffers {
    return plain(new Uint8Array(this.#words.buffer, 0, this.count * 16));
  }

  protected clearBuffers(): void {
    this.#words = new Int32Array(0);
  }
}

/** uuid and fixed(n): `size` bytes each. */
export class FixedBuilder extends ColumnBuilder {
  readonly size: number;
  #bytes: Uint8Array = new Uint8Array(0);

  constructor(type: DataType, nullable: boolean) {
    super(type, nullable);
    this.size = type.kind === "fixed" ? type.size : 16;
  }

  /** Copies `size` bytes from `start`. */
  append(bytes: Uint8Array, start: number): void {
    const at = this.#grow();
    for (let i = 0; i < this.size; i++) this.#bytes[at + i] = bytes[start + i]!;
    this.count++;
  }

  appendNull(): void {
    this.markNull();
    const at = this.#grow();
    this.#bytes.fill(0, at, at + this.size);
    this.count++;
  }

  #grow(): number {
    const at = this.count * this.size;
    if (at >= this.#bytes.length) {
      const grown = new Uint8Array(capacity(this.count + 1, this.#bytes.length / this.size, this.expected) * this.size);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    return at;
  }

  protected finishBuffers(): ColumnBuffers {
    return plain(this.#bytes.subarray(0, this.count * this.size));
  }

  protected clearBuffers(): void {
    this.#bytes = new Uint8Array(0);
  }
}
