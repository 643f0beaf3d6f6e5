/** Builders of all types: those with offsets or children are here, see `column-builder.ts` for what they have in common. */

import { type ColumnBuffers, ColumnBuilder, capacity, NO_CHILDREN } from "./column-builder.js";
import type { Column } from "./columns.js";
import { InvalidInputError } from "./errors.js";
import {
  BoolBuilder,
  DecimalBuilder,
  FixedBuilder,
  Float64Builder,
  Int32Builder,
  Int64Builder,
  NumberBuilder,
} from "./primitive-builders.js";
import { type DataType, type Field, storedType } from "./schema.js";

export { BoolBuilder, DecimalBuilder, FixedBuilder, Float64Builder, Int32Builder, Int64Builder, NumberBuilder };

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

/** Offsets are 32 bits, as in Arrow. */
const MAX_BYTES = 0x7fff_ffff;

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

  protected finishBuffers(): ColumnBuffers {
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
   * @returns the index of the first of them that may not be null, or -1
   */
  fill(): number {
    let missing = -1;
    for (let i = 0; i < this.children.length; i++) {
      const child = this.children[i]!;
      if (child.length > this.count) continue;
      if (!child.nullable && missing === -1) missing = i;
      child.appendNull();
    }
    return missing;
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

  protected finishBuffers(): ColumnBuffers {
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

  protected finishBuffers(): ColumnBuffers {
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

  protected finishBuffers(): ColumnBuffers {
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

  protected finishBuffers(): ColumnBuffers {
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
