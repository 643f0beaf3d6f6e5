/** Arrow tables and batches as our record batches, sharing their buffers where the layouts agree. */

import {
  type ArrowNumbers,
  datesOfMillis,
  decimals,
  halfFloats,
  MICROSECOND,
  type OutOfRange,
  times,
  timestamps,
} from "./arrow-numbers.js";
import { schemaFromArrow } from "./arrow-schema.js";
import {
  type ArrowBatch,
  type ArrowData,
  type ArrowDictionary,
  type ArrowLike,
  ArrowTypeId,
  batchesOf,
  fieldsOf,
  sliceData,
  valueWidth,
} from "./arrow-shape.js";
import { bitmapBytes, countBits, isValid, sliceBits } from "./bitmap.js";
import type { Column, RecordBatch } from "./columns.js";
import { InvalidInputError, LimitError } from "./errors.js";
import { fromHalves } from "./integers.js";
import { bytesOf, nullColumn, typedValues, valueBytes, wordsOf } from "./layout.js";
import { maskNulls } from "./nulls.js";
import { childFields, type DataType, type Schema, storedSchema, storedType } from "./schema.js";
import { concatColumns, NULL_ROW, takeValues } from "./take.js";
import { invalidUtf8 } from "./utf8-check.js";

/**
 * Reads an Arrow table or record batch. Field ids are 0; columns of the Null type are `unknown` in the schema and left
 * out of the batches. Timestamps below a microsecond are rounded down; a value beyond its type (a time over 24 h, a
 * decimal over its precision, a timestamp beyond 64 bits of microseconds) is an error, never wrapped.
 * @throws SchemaError `unsupported_type`
 * @throws InvalidInputError `bad_arrow`, `bad_encoding`, `out_of_range` while the batches are read
 */
export function fromArrow(source: ArrowLike): { schema: Schema; batches: Iterable<RecordBatch> } {
  const schema = schemaFromArrow(fieldsOf(source));
  return {
    schema,
    batches: {
      *[Symbol.iterator]() {
        for (const batch of batchesOf(source)) yield batchFromArrow(batch, schema);
      },
    },
  };
}

/** One batch whose fields gave `schema`. */
export function batchFromArrow(batch: ArrowBatch, schema: Schema): RecordBatch {
  const stored = storedSchema(schema);
  const columns: Column[] = [];
  schema.fields.forEach((field, i) => {
    const data = batch.data.children[i];
    if (storedType(field.type) === undefined) return;
    if (data === undefined || data.length < batch.numRows) {
      throw badArrow(field.name, `has ${data?.length ?? 0} values where the batch has ${batch.numRows} rows`);
    }
    const exact = data.length === batch.numRows ? data : sliceData(data, 0, batch.numRows);
    columns.push(new ColumnReader(field.name).column(exact, field.type));
  });
  if (columns.length === 0 && batch.numRows > MAX_EMPTY_ROWS) {
    throw new LimitError(
      "too_many_rows",
      `an Arrow batch claims ${batch.numRows} rows without a value: use smaller batches`,
    );
  }
  return { schema: stored, length: batch.numRows, columns };
}

/** Rows of a batch whose columns are all of the Null type: a few bytes could claim any number of them. */
const MAX_EMPTY_ROWS = 1 << 24;

/** Decoded dictionaries, by the vector that batches share. */
const DICTIONARIES = new WeakMap<ArrowDictionary, Column>();

/** Reads one top-level column; knows its name for errors. */
class ColumnReader {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** `type` is as {@link schemaFromArrow} gave it; its storable part must not be empty. */
  column(data: ArrowData, type: DataType): Column {
    if (data.type.typeId === ArrowTypeId.dictionary) return this.#dictionary(data, type);
    const stored = storedType(type)!;
    if (data.length === 0) return nullColumn(stored, 0);
    const validity = this.#validity(data);
    const present = { type: stored, length: data.length, nullCount: 0, validity: undefined };
    const column = { ...present, ...this.#buffers(data, type, validity) };
    const masked = validity === undefined ? column : maskNulls(column, validity);
    // Only now: what lies under nulls need not be text.
    if (type.kind === "string" || type.kind === "json") this.#checkText(bytesOf(masked.values!), masked.offsets!);
    return masked;
  }

  /** The validity bitmap from bit 0, undefined when nothing is null. */
  #validity(data: ArrowData): Uint8Array | undefined {
    const { nullBitmap, length, offset } = data;
    if (data.nullCount === 0 || !nullBitmap || nullBitmap.length === 0) return undefined;
    if (nullBitmap.length < bitmapBytes(offset + length))
      throw badArrow(this.#name, "has a validity bitmap that ends too soon");
    const bits = sliceBits(nullBitmap, offset, length);
    return countBits(bits, 0, length) === length ? undefined : bits;
  }

  #buffers(
    data: ArrowData,
    type: DataType,
    validity: Uint8Array | undefined,
  ): Pick<Column, "values" | "offsets" | "children"> {
    switch (type.kind) {
      case "bool": {
        const values = this.#bytes(data, bitmapBytes(data.offset + data.length));
        return leaf(sliceBits(values, data.offset, data.length));
      }
      case "float32":
        return leaf(data.type.precision === 0 ? halfFloats(this.#values(data)) : this.#fixed(data, type));
      case "decimal":
        return leaf(decimals(this.#values(data), type.precision, this.#outOfRange(validity, "its precision")));
      case "date":
        if (data.type.unit === 0) return leaf(this.#fixed(data, type));
        return leaf(datesOfMillis(this.#values(data), this.#outOfRange(validity, "a 32-bit day")));
      case "time":
        return leaf(times(this.#values(data), data.type.unit, this.#outOfRange(validity, "a time of day")));
      case "timestamp":
      case "timestamptz":
        if (data.type.unit === MICROSECOND) return leaf(this.#fixed(data, type));
        return leaf(
          timestamps(this.#values(data), data.type.unit, this.#outOfRange(validity, "64 bits of microseconds")),
        );
      case "string":
      case "json":
      case "binary":
        return this.#text(data, validity);
      case "list":
      case "map":
        return this.#elements(data, type, validity);
      case "struct": {
        const children: Column[] = [];
        type.fields.forEach((field, i) => {
          if (storedType(field.type) !== undefined) children.push(this.#child(data, i, data.length, field.type));
        });
        return { values: undefined, offsets: undefined, children };
      }
      default:
        return leaf(this.#fixed(data, type));
    }
  }

  /** At least `size` bytes of values. */
  #bytes(data: ArrowData, size: number): Uint8Array {
    const bytes = data.values ? bytesOf(data.values) : new Uint8Array(0);
    if (bytes.length < size) throw badArrow(this.#name, `has ${bytes.length} bytes of values where ${size} are needed`);
    return bytes.length === size ? bytes : bytes.subarray(0, size);
  }

  #values(data: ArrowData): ArrowNumbers {
    const width = valueWidth(data.type);
    return { bytes: this.#bytes(data, data.length * width), width, length: data.length };
  }

  /** A value that is not null and beyond its limit ends the reading. */
  #outOfRange(validity: Uint8Array | undefined, limit: string): OutOfRange {
    return (row) => {
      if (!isValid(validity, row)) return;
      const message = `the Arrow column ${JSON.stringify(this.#name)} holds a value beyond ${limit}, first in value ${row + 1}`;
      throw new InvalidInputError("out_of_range", message, { subject: this.#name });
    };
  }

  #fixed(data: ArrowData, type: DataType): NonNullable<Column["values"]> {
    return typedValues(type, this.#bytes(data, data.length * valueBytes(type)));
  }

  #text(data: ArrowData, validity: Uint8Array | undefined): Pick<Column, "values" | "offsets" | "children"> {
    const { typeId } = data.type;
    const views = typeId === ArrowTypeId.utf8View || typeId === ArrowTypeId.binaryView;
    return { ...(views ? this.#views(data, validity) : this.#ranges(data)), children: [] };
  }

  #ranges(data: ArrowData): { offsets: Int32Array; values: Uint8Array } {
    const wide = data.type.typeId === ArrowTypeId.largeUtf8 || data.type.typeId === ArrowTypeId.largeBinary;
    const size = data.values?.byteLength ?? 0;
    const { offsets, start, end } = this.#offsets(data, wide, size);
    const values = data.values ? bytesOf(data.values) : new Uint8Array(0);
    return { offsets, values: values.subarray(start, end) };
  }

  /** Sixteen bytes each: length, then up to 12 bytes of text, or a prefix, a buffer's number and an offset in it. */
  #views(data: ArrowData, validity: Uint8Array | undefined): { offsets: Int32Array; values: Uint8Array } {
    const bytes = this.#bytes(data, data.length * 16);
    const words = wordsOf(bytes);
    const buffers = data.variadicBuffers ?? [];
    const offsets = new Int32Array(data.length + 1);
    let total = 0;
    for (let i = 0; i < data.length; i++) {
      if (isValid(validity, i)) total += words[4 * i]!;
      if (total > 0x7fffffff) throw tooLarge(this.#name);
      offsets[i + 1] = total;
    }
    const values = new Uint8Array(total);
    for (let i = 0; i < data.length; i++) {
      const length = offsets[i + 1]! - offsets[i]!;
      if (length === 0) continue;
      const buffer = length <= 12 ? bytes : buffers[words[4 * i + 2]!];
      const start = length <= 12 ? i * 16 + 4 : words[4 * i + 3]!;
      if (buffer === undefined || start + length > buffer.length)
        throw badArrow(this.#name, "has a view outside of its buffers");
      values.set(buffer.subarray(start, start + length), offsets[i]!);
    }
    return { offsets, values };
  }

  #checkText(values: Uint8Array, offsets: Int32Array): void {
    const at = invalidUtf8(values, 0, values.length);
    let bad = at < 0 ? -1 : offsets.findIndex((offset) => offset > at) - 1;
    // Valid as a whole, but a value may end within a character.
    if (at < 0) bad = offsets.findIndex((offset) => offset < values.length && (values[offset]! & 0xc0) === 0x80);
    if (bad >= 0) {
      throw new InvalidInputError(
        "bad_encoding",
        `the Arrow column ${JSON.stringify(this.#name)} holds text that is not UTF-8, first in value ${bad + 1}`,
        {
          subject: this.#name,
        },
      );
    }
  }

  /** Offsets from 0, and the range of the child or bytes that they are of. */
  #offsets(data: ArrowData, wide: boolean, limit: number): { offsets: Int32Array; start: number; end: number } {
    const count = data.length + 1;
    const bytes = data.valueOffsets ? bytesOf(data.valueOffsets) : new Uint8Array(0);
    const width = wide ? 8 : 4;
    if (bytes.length < count * width) throw badArrow(this.#name, "has too few offsets");
    const words = wordsOf(bytes.subarray(0, count * width));
    const at = (i: number): number => (wide ? fromHalves(words[2 * i]!, words[2 * i + 1]! | 0) : words[i]! | 0);
    const start = at(0);
    const end = at(count - 1);
    if (end - start > 0x7fffffff) throw tooLarge(this.#name);
    const offsets = new Int32Array(count);
    let previous = start;
    for (let i = 0; i < count; i++) {
      const offset = at(i);
      if (offset < previous) throw badArrow(this.#name, "has offsets that go backwards");
      offsets[i] = offset - start;
      previous = offset;
    }
    if (start < 0 || end > limit) throw badArrow(this.#name, "has offsets beyond its values");
    return { offsets, start, end };
  }

  #elements(
    data: ArrowData,
    type: DataType & { kind: "list" | "map" },
    validity: Uint8Array | undefined,
  ): Pick<Column, "values" | "offsets" | "children"> {
    const entries = data.children[0];
    if (entries === undefined) throw badArrow(this.#name, "has a list without elements");
    if (data.type.typeId === ArrowTypeId.fixedSizeList) return this.#fixedLists(data, type, validity);
    const wide = data.type.typeId === ArrowTypeId.largeList;
    const { offsets, start, end } = this.#offsets(data, wide, entries.length);
    const used = start === 0 && end === entries.length ? entries : sliceData(entries, start, end - start);
    const children =
      type.kind === "list"
        ? [this.column(used, type.element.type)]
        : [this.#child(used, 0, end - start, type.key.type), this.#child(used, 1, end - start, type.value.type)];
    return { values: undefined, offsets, children };
  }

  /** Every list has `listSize` elements, also under a null. */
  #fixedLists(
    data: ArrowData,
    type: DataType & { kind: "list" | "map" },
    validity: Uint8Array | undefined,
  ): Pick<Column, "values" | "offsets" | "children"> {
    const size = data.type.listSize ?? 0;
    const all = this.#child(data, 0, data.length * size, childFields(type)[0]!.type);
    const offsets = new Int32Array(data.length + 1);
    const kept: number[] = [];
    for (let i = 0; i < data.length; i++) {
      if (isValid(validity, i)) for (let k = 0; k < size; k++) kept.push(i * size + k);
      offsets[i + 1] = kept.length;
    }
    const child = kept.length === data.length * size ? all : takeValues(all, Uint32Array.from(kept));
    return { values: undefined, offsets, children: [child] };
  }

  /** A child of as many values as its parent has. */
  #child(data: ArrowData, index: number, length: number, type: DataType): Column {
    const child = data.children[index];
    if (child === undefined || child.length < length)
      throw badArrow(this.#name, "has a child that is shorter than itself");
    return this.column(child.length === length ? child : sliceData(child, 0, length), type);
  }

  /** Each batch has the dictionary that it was written with: one that is replaced later does not change it. */
  #dictionary(data: ArrowData, type: DataType): Column {
    const stored = storedType(type)!;
    const { dictionary } = data;
    const validity = this.#validity(data);
    if (data.length === 0) return nullColumn(stored, 0);
    if (dictionary === undefined) throw badArrow(this.#name, "uses a dictionary that was never sent");
    let values = DICTIONARIES.get(dictionary);
    if (values === undefined) {
      const chunks = dictionary.data.map((chunk) => this.column(chunk, type));
      values = chunks.length === 0 ? nullColumn(stored, 0) : concatColumns(chunks);
      DICTIONARIES.set(dictionary, values);
    }
    const { bitWidth = 32, isSigned = true } = data.type.indices ?? {};
    const kind = `${isSigned ? "int" : "uint"}${bitWidth}` as "int32";
    const indices = typedValues({ kind }, this.#bytes(data, (data.length * bitWidth) / 8)) as Int32Array;
    const rows = new Uint32Array(data.length);
    for (let i = 0; i < rows.length; i++) {
      if (!isValid(validity, i)) {
        rows[i] = NULL_ROW;
        continue;
      }
      // 64-bit indices come as bigint.
      const index = Number(indices[i]);
      if (!(index >= 0 && index < values.length)) {
        throw badArrow(this.#name, `has an index of ${index} into a dictionary of ${values.length} values`);
      }
      rows[i] = index;
    }
    return { ...takeValues(values, rows), type: stored };
  }
}

function leaf(values: NonNullable<Column["values"]>): Pick<Column, "values" | "offsets" | "children"> {
  return { values, offsets: undefined, children: [] };
}

function badArrow(name: string, what: string): InvalidInputError {
  return new InvalidInputError("bad_arrow", `the Arrow data is damaged: the column ${JSON.stringify(name)} ${what}`, {
    subject: name,
  });
}

function tooLarge(name: string): LimitError {
  return new LimitError(
    "column_too_large",
    `the Arrow column ${JSON.stringify(name)} holds over 2 GiB in one batch: use smaller batches`,
    {
      subject: name,
    },
  );
}
