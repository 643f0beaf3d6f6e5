/**
 * Growable columns: what every reader (JSON, CSV, rows) fills. A builder writes straight into Arrow-layout buffers;
 * it makes no object, string or BigInt per value, can take back its last values (`truncate`), and gives its buffers
 * away when finished.
 */

import type { Column, ColumnValues } from "./columns.js";
import { InvalidInputError } from "./errors.js";
import { type DataType, type Field, storedType } from "./schema.js";

/** A builder of any type; `builder.type.kind` tells which class it is (see {@link createBuilder}). */
export type Builder =
  | BoolBuilder
  | NumberBuilder
  | Int32Builder
  | Float64Builder
  | Int64Builder
  | DecimalBuilder
  | FixedBuilder
  | BytesBuilder
  | StructBuilder
  | ListBuilder
  | MapBuilder
  | UnknownBuilder;

/** Values in a new buffer. A later batch starts with what the batch before it needed. */
const MIN_CAPACITY = 16;

/** Offsets are 32 bits, as in Arrow. */
const MAX_BYTES = 0x7fff_ffff;

abstract class ColumnBuilder {
  readonly type: DataType;
  /** Whether null fits; readers check it, `appendNull` does not (children of a null struct are null in any case). */
  readonly nullable: boolean;
  protected count = 0;
  /** Values that the last finished batch held: the first allocation of the next one. */
  protected expected = 0;
  #nulls = 0;
  /** Prefilled with ones, so that only nulls write to it. */
  #validity: Uint8Array = new Uint8Array(0);

  constructor(type: DataType, nullable: boolean) {
    this.type = type;
    this.nullable = nullable;
  }

  get length(): number {
    return this.count;
  }

  abstract appendNull(): void;

  /** Takes back all values from index `length` on. */
  truncate(length: number): void {
    if (this.#nulls > 0) {
      for (let i = length; i < this.count; i++) {
        const mask = 1 << (i & 7);
        const byte = this.#validity[i >> 3] ?? 0xff;
        if ((byte & mask) === 0) {
          this.#validity[i >> 3] = byte | mask;
          this.#nulls--;
        }
      }
    }
    this.count = length;
  }

  /** The values so far as a column of the stored type. The builder is empty afterwards and keeps none of the memory. */
  finish(): Column {
    const column = {
      type: storedType(this.type) ?? this.type,
      length: this.count,
      nullCount: this.#nulls,
      validity: this.#nulls === 0 ? undefined : this.#finishValidity(),
      ...this.finishBuffers(),
    };
    this.clear();
    return column;
  }

  /** Forgets the values and frees the memory. */
  clear(): void {
    // What is cleared twice (as a child, after it was finished) keeps what it expects.
    if (this.count > 0) this.expected = this.count;
    this.count = 0;
    this.#nulls = 0;
    this.#validity = new Uint8Array(0);
    this.clearBuffers();
  }

  protected abstract finishBuffers(): Pick<Column, "values" | "offsets" | "children">;
  protected abstract clearBuffers(): void;

  /** Marks the next slot as null; the caller counts it. */
  protected markNull(): void {
    const at = this.count >> 3;
    if (at >= this.#validity.length) {
      const grown = new Uint8Array(capacity(at + 1, this.#validity.length, (this.expected >> 3) + 1)).fill(0xff);
      grown.set(this.#validity);
      this.#validity = grown;
    }
    this.#validity[at]! &= ~(1 << (this.count & 7));
    this.#nulls++;
  }

  #finishValidity(): Uint8Array {
    const size = (this.count + 7) >> 3;
    let validity = this.#validity.subarray(0, size);
    if (validity.length < size) {
      validity = new Uint8Array(size).fill(0xff);
      validity.set(this.#validity);
    }
    // Bits beyond the last value are zero, as Arrow recommends, so that equal columns have equal bytes.
    if ((this.count & 7) !== 0) validity[size - 1]! &= (1 << (this.count & 7)) - 1;
    return validity;
  }
}

/** How large a full buffer of `current` values becomes to hold `needed`. */
function capacity(needed: number, current: number, expected: number): number {
  return Math.max(needed, current * 2, expected, MIN_CAPACITY);
}

const NO_CHILDREN: readonly Column[] = [];

function plain(values: ColumnValues): Pick<Column, "values" | "offsets" | "children"> {
  return { values, offsets: undefined, children: NO_CHILDREN };
}

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

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
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

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
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

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
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

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
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

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
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

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
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

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
    return plain(this.#bytes.subarray(0, this.count * this.size));
  }

  protected clearBuffers(): void {
    this.#bytes = new Uint8Array(0);
  }
}

/** Ends of variable-length values, for bytes, lists and maps: `length + 1` offsets, the first 0. */
class Offsets {
  #offsets: Int32Array = new Int32Array(1);

  /** Where value `index` begins. */
  start(index: number): number {
    return this.#offsets[index]!;
  }

  /** Value `index` ends at `end`. */
  close(index: number, end: number, expected: number): void {
    if (index + 1 >= this.#offsets.length) {
      const grown = new Int32Array(capacity(index + 2, this.#offsets.length, expected + 1));
      grown.set(this.#offsets);
      this.#offsets = grown;
    }
    this.#offsets[index + 1] = end;
  }

  finish(length: number): Int32Array {
    return this.#offsets.subarray(0, length + 1);
  }

  clear(): void {
    this.#offsets = new Int32Array(1);
  }
}

/** string, json and binary. */
export class BytesBuilder extends ColumnBuilder {
  /** Filled up to the end of the last value; writers may use the room made by {@link open}. */
  data: Uint8Array = new Uint8Array(0);
  readonly #offsets: Offsets = new Offsets();
  #end = 0;
  #expectedBytes = 0;

  /** Makes room for a value of at most `size` bytes in {@link data}; returns where it begins. End it with {@link close}. */
  open(size: number): number {
    const needed = this.#end + size;
    if (needed > this.data.length) {
      if (needed > MAX_BYTES) {
        throw new InvalidInputError("batch_too_large", "a column of one batch exceeds 2 GiB: lower batchBytes");
      }
      const grown = new Uint8Array(
        Math.min(MAX_BYTES, capacity(needed, this.data.length, this.count === 0 ? this.#expectedBytes : 0)),
      );
      grown.set(this.data.subarray(0, this.#end));
      this.data = grown;
    }
    return this.#end;
  }

  /** The value begun by {@link open} ends at `end` of {@link data}. */
  close(end: number): void {
    this.#offsets.close(this.count++, end, this.expected);
    this.#end = end;
  }

  append(bytes: Uint8Array, start: number, end: number): void {
    const at = this.open(end - start);
    // A copy by `set` costs a view; below this many bytes the loop wins.
    if (end - start > 64) this.data.set(bytes.subarray(start, end), at);
    else for (let i = start; i < end; i++) this.data[at + i - start] = bytes[i]!;
    this.close(at + end - start);
  }

  appendNull(): void {
    this.markNull();
    this.close(this.#end);
  }

  /** Where value `index` begins in {@link data}; `length` gives the end of the last one. */
  start(index: number): number {
    return this.#offsets.start(index);
  }

  override truncate(length: number): void {
    super.truncate(length);
    this.#end = this.#offsets.start(length);
  }

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
    return {
      values: this.data.subarray(0, this.#end),
      offsets: this.#offsets.finish(this.count),
      children: NO_CHILDREN,
    };
  }

  protected clearBuffers(): void {
    if (this.#end > 0) this.#expectedBytes = this.#end;
    this.#end = 0;
    this.data = new Uint8Array(0);
    this.#offsets.clear();
  }
}

/** struct: fill each child by one value (or {@link fill} the rest with nulls), then {@link append}. */
export class StructBuilder extends ColumnBuilder {
  readonly children: readonly Builder[];

  constructor(type: DataType, nullable: boolean, fields: readonly Field[]) {
    super(type, nullable);
    this.children = fields.map(createBuilder);
  }

  /**
   * Gives null to each child that has no value yet for the struct being filled.
   * @returns the index of a child that may not be null, or -1
   */
  fill(): number {
    for (let i = 0; i < this.children.length; i++) {
      const child = this.children[i]!;
      if (child.length > this.count) continue;
      if (!child.nullable) return i;
      child.appendNull();
    }
    return -1;
  }

  append(): void {
    this.count++;
  }

  appendNull(): void {
    this.markNull();
    for (const child of this.children) child.appendNull();
    this.count++;
  }

  override truncate(length: number): void {
    super.truncate(length);
    // Also where the struct itself is shorter: its children may hold the values of a row that was not finished.
    for (const child of this.children) child.truncate(length);
  }

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
    return { values: undefined, offsets: undefined, children: finishStored(this.children) };
  }

  protected clearBuffers(): void {
    for (const child of this.children) child.clear();
  }
}

/** list: append the elements to {@link element}, then {@link append}. */
export class ListBuilder extends ColumnBuilder {
  readonly element: Builder;
  readonly #offsets: Offsets = new Offsets();

  constructor(type: DataType, nullable: boolean, element: Field) {
    super(type, nullable);
    this.element = createBuilder(element);
  }

  /** The list ends with the last element so far. */
  append(): void {
    this.#offsets.close(this.count++, this.element.length, this.expected);
  }

  appendNull(): void {
    this.markNull();
    this.append();
  }

  override truncate(length: number): void {
    super.truncate(length);
    this.element.truncate(this.#offsets.start(length));
  }

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
    return {
      values: undefined,
      offsets: this.#offsets.finish(this.count),
      children: finishStored([this.element]),
    };
  }

  protected clearBuffers(): void {
    this.#offsets.clear();
    this.element.clear();
  }
}

/** map: append each entry to {@link key} and {@link value}, then {@link append}. Keys are unique by the caller's care. */
export class MapBuilder extends ColumnBuilder {
  readonly key: Builder;
  readonly value: Builder;
  readonly #offsets: Offsets = new Offsets();

  constructor(type: DataType, nullable: boolean, key: Field, value: Field) {
    super(type, nullable);
    this.key = createBuilder(key);
    this.value = createBuilder(value);
  }

  /** The map ends with the last entry so far. */
  append(): void {
    this.#offsets.close(this.count++, this.key.length, this.expected);
  }

  appendNull(): void {
    this.markNull();
    this.append();
  }

  override truncate(length: number): void {
    super.truncate(length);
    const entries = this.#offsets.start(length);
    this.key.truncate(entries);
    this.value.truncate(entries);
  }

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
    return {
      values: undefined,
      offsets: this.#offsets.finish(this.count),
      children: finishStored([this.key, this.value]),
    };
  }

  protected clearBuffers(): void {
    this.#offsets.clear();
    this.key.clear();
    this.value.clear();
  }
}

/** A field without a type yet: counts its nulls and is never stored. */
export class UnknownBuilder extends ColumnBuilder {
  appendNull(): void {
    this.count++;
  }

  protected finishBuffers(): Pick<Column, "values" | "offsets" | "children"> {
    return { values: undefined, offsets: undefined, children: NO_CHILDREN };
  }

  protected clearBuffers(): void {}
}

/** Finishes the builders whose type can be stored and empties the others. */
function finishStored(builders: readonly Builder[]): readonly Column[] {
  const columns: Column[] = [];
  for (const builder of builders) {
    if (storedType(builder.type) === undefined) builder.clear();
    else columns.push(builder.finish());
  }
  return columns;
}

/** An empty builder for a field. */
export function createBuilder(field: Field): Builder {
  const { type, nullable } = field;
  switch (type.kind) {
    case "bool":
      return new BoolBuilder(type, nullable);
    case "int8":
    case "int16":
    case "uint8":
    case "uint16":
    case "uint32":
    case "float32":
      return new NumberBuilder(type, nullable);
    case "int32":
    case "date":
      return new Int32Builder(type, nullable);
    case "float64":
      return new Float64Builder(type, nullable);
    case "int64":
    case "uint64":
    case "time":
    case "timestamp":
    case "timestamptz":
      return new Int64Builder(type, nullable);
    case "decimal":
      return new DecimalBuilder(type, nullable);
    case "uuid":
    case "fixed":
      return new FixedBuilder(type, nullable);
    case "string":
    case "json":
    case "binary":
      return new BytesBuilder(type, nullable);
    case "struct":
      return new StructBuilder(type, nullable, type.fields);
    case "list":
      return new ListBuilder(type, nullable, type.element);
    case "map":
      return new MapBuilder(type, nullable, type.key, type.value);
    case "unknown":
      return new UnknownBuilder(type, nullable);
  }
}
