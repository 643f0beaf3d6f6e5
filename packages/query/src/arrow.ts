/**
 * DuckDB's vectors as columns: buffers are copied whole, values are never visited where the layouts agree.
 * Layouts as in DuckDB's C API ("Data Chunks", "Vectors"): flat vectors of fixed-width values, 16-byte strings whose
 * first 12 bytes are inline or a prefix and a pointer, list entries of two 64-bit numbers.
 */

import { type Column, type ColumnValues, type DataType, type Field, type RecordBatch, takeRows } from "@eider/core";
import type { Native, NativeChunk, NativeType, NativeVector } from "./native.js";
import { structNames, structTypes, typeText } from "./result-types.js";
import { readStrings } from "./strings.js";
import {
  asBytes,
  BIT_COUNTS,
  bigEndianUuids,
  floorToMicros,
  isSet,
  joinBytes,
  packBits,
  scaleInstants,
  widen,
  widen64,
} from "./vector-values.js";

/** How vectors of one DuckDB type become columns. */
export interface ColumnReader {
  readonly type: DataType;
  /** `mask` has a 0 bit where a value is null because its parent is. */
  read(vector: NativeVector, length: number, mask: Uint8Array | undefined): Column;
}

export class VectorReader {
  readonly #native: Native;

  constructor(native: Native) {
    this.#native = native;
  }

  /** A chunk of a result as a batch. */
  batch(chunk: NativeChunk, length: number, fields: readonly Field[], readers: readonly ColumnReader[]): RecordBatch {
    const columns = readers.map((reader, i) =>
      reader.read(this.#native.data_chunk_get_vector(chunk, i), length, undefined),
    );
    return { schema: { fields }, length, columns };
  }

  /** The reader for a DuckDB type; types that `castTarget` names are cast before they come here. */
  column(type: NativeType): ColumnReader {
    const native = this.#native;
    const { Type } = native;
    switch (native.get_type_id(type)) {
      case Type.BOOLEAN:
        return this.#leaf({ kind: "bool" }, 1, packBits);
      case Type.TINYINT:
        return this.#leaf({ kind: "int8" }, 1, (b) => new Int8Array(b));
      case Type.SMALLINT:
        return this.#leaf({ kind: "int16" }, 2, (b) => new Int16Array(b));
      case Type.INTEGER:
      case Type.SQLNULL:
        return this.#leaf({ kind: "int32" }, 4, (b) => new Int32Array(b));
      case Type.BIGINT:
        return this.#leaf({ kind: "int64" }, 8, (b) => new BigInt64Array(b));
      case Type.UTINYINT:
        return this.#leaf({ kind: "uint8" }, 1, (b) => new Uint8Array(b));
      case Type.USMALLINT:
        return this.#leaf({ kind: "uint16" }, 2, (b) => new Uint16Array(b));
      case Type.UINTEGER:
        return this.#leaf({ kind: "uint32" }, 4, (b) => new Uint32Array(b));
      case Type.UBIGINT:
        return this.#leaf({ kind: "uint64" }, 8, (b) => new BigUint64Array(b));
      case Type.FLOAT:
        return this.#leaf({ kind: "float32" }, 4, (b) => new Float32Array(b));
      case Type.DOUBLE:
        return this.#leaf({ kind: "float64" }, 8, (b) => new Float64Array(b));
      case Type.DATE:
        return this.#leaf({ kind: "date" }, 4, (b) => new Int32Array(b));
      case Type.TIME:
        return this.#leaf({ kind: "time" }, 8, (b) => new BigInt64Array(b));
      case Type.TIMESTAMP:
        return this.#leaf({ kind: "timestamp" }, 8, (b) => new BigInt64Array(b));
      case Type.TIMESTAMP_TZ:
        return this.#leaf({ kind: "timestamptz" }, 8, (b) => new BigInt64Array(b));
      case Type.TIMESTAMP_S:
        return this.#leaf({ kind: "timestamp" }, 8, (b) => scaleInstants(b, (v) => v * 1_000_000n));
      case Type.TIMESTAMP_MS:
        return this.#leaf({ kind: "timestamp" }, 8, (b) => scaleInstants(b, (v) => v * 1000n));
      case Type.TIMESTAMP_NS:
        return this.#leaf({ kind: "timestamp" }, 8, (b) => scaleInstants(b, floorToMicros));
      case Type.HUGEINT:
        return this.#leaf({ kind: "decimal", precision: 38, scale: 0 }, 16, asBytes);
      case Type.UUID:
        return this.#leaf({ kind: "uuid" }, 16, bigEndianUuids);
      case Type.DECIMAL:
        return this.#decimal(type);
      case Type.VARCHAR:
        return this.#bytes({ kind: native.logical_type_get_alias(type) === "JSON" ? "json" : "string" });
      case Type.BLOB:
        return this.#bytes({ kind: "binary" });
      case Type.ENUM:
        return this.#enum(type);
      case Type.LIST:
        return this.#list(type);
      case Type.ARRAY:
        return this.#array(type);
      case Type.MAP:
        return this.#map(type);
      case Type.STRUCT:
        return this.#struct(type);
      default:
        throw new Error(`a ${typeText(native, type)} result is cast before it is read`);
    }
  }

  #leaf(type: DataType, width: number, values: (bytes: ArrayBuffer) => ColumnValues): ColumnReader {
    return {
      type,
      read: (vector, length, mask) => ({
        type,
        length,
        ...this.#validity(vector, length, mask),
        values: values(this.#data(vector, length * width)),
        offsets: undefined,
        children: [],
      }),
    };
  }

  #decimal(native: NativeType): ColumnReader {
    const { Type } = this.#native;
    const type: DataType = {
      kind: "decimal",
      precision: this.#native.decimal_width(native),
      scale: this.#native.decimal_scale(native),
    };
    switch (this.#native.decimal_internal_type(native)) {
      case Type.SMALLINT:
        return this.#leaf(type, 2, (b) => widen(new Int16Array(b)));
      case Type.INTEGER:
        return this.#leaf(type, 4, (b) => widen(new Int32Array(b)));
      case Type.BIGINT:
        return this.#leaf(type, 8, widen64);
      default:
        return this.#leaf(type, 16, asBytes);
    }
  }

  #bytes(type: DataType): ColumnReader {
    return {
      type,
      read: (vector, length, mask) => {
        const { nullCount, validity } = this.#validity(vector, length, mask);
        const entries = this.#data(vector, length * 16);
        const { values, offsets } = readStrings(this.#native, entries, length, validity);
        return { type, length, nullCount, validity, values, offsets, children: [] };
      },
    };
  }

  #enum(native: NativeType): ColumnReader {
    const { Type } = this.#native;
    const type: DataType = { kind: "string" };
    const size = this.#native.enum_dictionary_size(native);
    const words = Array.from({ length: size }, (_, i) => Buffer.from(this.#native.enum_dictionary_value(native, i)));
    const internal = this.#native.enum_internal_type(native);
    const width = internal === Type.UTINYINT ? 1 : internal === Type.USMALLINT ? 2 : 4;
    return {
      type,
      read: (vector, length, mask) => {
        const { nullCount, validity } = this.#validity(vector, length, mask);
        const data = this.#data(vector, length * width);
        const codes = width === 1 ? new Uint8Array(data) : width === 2 ? new Uint16Array(data) : new Uint32Array(data);
        const pieces: Uint8Array[] = [];
        for (let row = 0; row < length; row++) pieces.push(isSet(validity, row) ? words[codes[row]!]! : EMPTY);
        return { type, length, nullCount, validity, ...joinBytes(pieces), children: [] };
      },
    };
  }

  #list(native: NativeType): ColumnReader {
    const element = this.column(this.#native.list_type_child_type(native));
    const type: DataType = { kind: "list", element: field("element", element.type, true) };
    return {
      type,
      read: (vector, length, mask) => {
        const own = this.#validity(vector, length, mask);
        const { offsets, rows } = this.#entries(vector, length, own.validity);
        const size = rows ? this.#native.list_vector_get_size(vector) : offsets[length]!;
        const child = element.read(this.#native.list_vector_get_child(vector), size, undefined);
        return { type, length, ...own, values: undefined, offsets, children: [rows ? gather(child, rows) : child] };
      },
    };
  }

  #map(native: NativeType): ColumnReader {
    const key = this.column(this.#native.map_type_key_type(native));
    const value = this.column(this.#native.map_type_value_type(native));
    const type: DataType = {
      kind: "map",
      key: field("key", key.type, false),
      value: field("value", value.type, true),
    };
    return {
      type,
      read: (vector, length, mask) => {
        const own = this.#validity(vector, length, mask);
        const { offsets, rows } = this.#entries(vector, length, own.validity);
        const size = rows ? this.#native.list_vector_get_size(vector) : offsets[length]!;
        // A map is a list of structs of key and value.
        const pairs = this.#native.list_vector_get_child(vector);
        const children = [key, value].map((reader, i) => {
          const child = reader.read(this.#native.struct_vector_get_child(pairs, i), size, undefined);
          return rows ? gather(child, rows) : child;
        });
        return { type, length, ...own, values: undefined, offsets, children };
      },
    };
  }

  #array(native: NativeType): ColumnReader {
    const element = this.column(this.#native.array_type_child_type(native));
    const size = this.#native.array_type_array_size(native);
    const type: DataType = { kind: "list", element: field("element", element.type, true) };
    return {
      type,
      read: (vector, length, mask) => {
        const own = this.#validity(vector, length, mask);
        const child = element.read(this.#native.array_vector_get_child(vector), length * size, undefined);
        const offsets = new Int32Array(length + 1);
        if (own.validity === undefined) {
          for (let row = 1; row <= length; row++) offsets[row] = row * size;
          return { type, length, ...own, values: undefined, offsets, children: [child] };
        }
        const rows = new Uint32Array((length - own.nullCount) * size);
        let at = 0;
        for (let row = 0; row < length; row++) {
          if (isSet(own.validity, row)) for (let i = 0; i < size; i++) rows[at++] = row * size + i;
          offsets[row + 1] = at;
        }
        return { type, length, ...own, values: undefined, offsets, children: [gather(child, rows)] };
      },
    };
  }

  #struct(native: NativeType): ColumnReader {
    const readers = structTypes(this.#native, native).map((child) => this.column(child));
    const names = structNames(this.#native, native);
    const type: DataType = { kind: "struct", fields: readers.map((reader, i) => field(names[i]!, reader.type, true)) };
    return {
      type,
      read: (vector, length, mask) => {
        const own = this.#validity(vector, length, mask);
        const children = readers.map((reader, i) =>
          reader.read(this.#native.struct_vector_get_child(vector, i), length, own.validity),
        );
        return { type, length, ...own, values: undefined, offsets: undefined, children };
      },
    };
  }

  /** The vector's first bytes, as memory of our own. */
  #data(vector: NativeVector, bytes: number): ArrayBuffer {
    if (bytes === 0) return new ArrayBuffer(0);
    const data = this.#native.vector_get_data(vector, bytes);
    const { buffer, byteOffset, byteLength } = data;
    const whole = byteOffset === 0 && byteLength === buffer.byteLength;
    return (whole ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)) as ArrayBuffer;
  }

  #validity(
    vector: NativeVector,
    length: number,
    mask: Uint8Array | undefined,
  ): { nullCount: number; validity: Uint8Array | undefined } {
    // DuckDB keeps validity in 64-bit words; null means that all are valid.
    const own = length === 0 ? null : this.#native.vector_get_validity(vector, Math.ceil(length / 64) * 8);
    if (own === null && mask === undefined) return { nullCount: 0, validity: undefined };
    const validity = new Uint8Array((length + 7) >>> 3);
    let valid = 0;
    for (let i = 0; i < validity.length; i++) {
      let bits = (own === null ? 0xff : own[i]!) & (mask === undefined ? 0xff : mask[i]!);
      const left = length - i * 8;
      if (left < 8) bits &= (1 << left) - 1;
      validity[i] = bits;
      valid += BIT_COUNTS[bits]!;
    }
    const nullCount = length - valid;
    return { nullCount, validity: nullCount === 0 ? undefined : validity };
  }

  /**
   * List entries as offsets. `rows` is set where the elements do not simply follow each other in the child vector: then
   * it tells which elements make up the lists.
   */
  #entries(
    vector: NativeVector,
    length: number,
    validity: Uint8Array | undefined,
  ): { offsets: Int32Array; rows: Uint32Array | undefined } {
    // Offset and length of each list; both are far below 2^32 in one vector.
    const words = new Uint32Array(this.#data(vector, length * 16));
    const offsets = new Int32Array(length + 1);
    let end = 0;
    let inOrder = true;
    for (let row = 0; row < length; row++) {
      const count = isSet(validity, row) ? words[row * 4 + 2]! : 0;
      if (count > 0 && words[row * 4] !== end) inOrder = false;
      end += count;
      offsets[row + 1] = end;
    }
    if (inOrder) return { offsets, rows: undefined };
    const rows = new Uint32Array(end);
    for (let row = 0; row < length; row++) {
      const start = offsets[row]!;
      for (let i = start; i < offsets[row + 1]!; i++) rows[i] = words[row * 4]! + i - start;
    }
    return { offsets, rows };
  }
}

const EMPTY = new Uint8Array(0);

function field(name: string, type: DataType, nullable: boolean): Field {
  return { id: 0, name, type, nullable };
}

function gather(column: Column, rows: Uint32Array): Column {
  const schema = { fields: [field("", column.type, true)] };
  return takeRows({ schema, length: column.length, columns: [column] }, rows).columns[0]!;
}
