/** Reads a Parquet file's footer: what a file says about itself, for import, verification and rebuilding a catalog. */

import { bigEndian } from "./parquet-buffer.js";
import { MAGIC, PhysicalType } from "./parquet-format.js";
import { readSchema, type StoredLeaf } from "./parquet-schema-reader.js";
import { malformed, readThrift, type ThriftStruct } from "./parquet-thrift.js";
import type { Schema } from "./schema.js";
import { type Bounds, type BoundValue, type ColumnStatistics, mergeBounds, NO_BOUNDS } from "./statistics.js";

export interface ParquetFooter {
  /** Field ids are 0 where the file has none. Files of others may hold `unknown` columns. */
  readonly schema: Schema;
  readonly rows: number;
  readonly rowGroups: readonly { readonly rows: number; readonly bytes: number }[];
  readonly keyValues: ReadonlyMap<string, string>;
  readonly createdBy: string | undefined;
  /**
   * Of the whole file, leaf by leaf, with only what can be relied on: bounds that the file orders by type, and of float
   * columns by other writers that they may hold NaN. A leaf whose null count is not told is undefined.
   */
  readonly statistics: readonly (ColumnStatistics | undefined)[];
}

/** Length and magic. */
const TRAILER_BYTES = 8;

/**
 * How many bytes of the file's end {@link readParquetFooter} needs.
 * @param tail the file's last bytes, at least 8
 * @throws InvalidInputError `bad_parquet`
 */
export function parquetFooterBytes(tail: Uint8Array): number {
  if (tail.length < TRAILER_BYTES) throw malformed("it is too short");
  const magic = tail.subarray(tail.length - 4);
  if (String.fromCharCode(...magic) === "PARE") throw malformed("its footer is encrypted");
  if (magic.some((byte, i) => byte !== MAGIC[i])) throw malformed("it does not end with PAR1");
  const view = new DataView(tail.buffer, tail.byteOffset, tail.byteLength);
  return view.getUint32(tail.length - TRAILER_BYTES, true) + TRAILER_BYTES;
}

/**
 * Reads the footer from the end of a file.
 * @param tail the file's last bytes, at least {@link parquetFooterBytes}; the whole file will do
 * @throws InvalidInputError `bad_parquet`
 * @throws SchemaError `unsupported_type`, naming the column
 */
export function readParquetFooter(tail: Uint8Array): ParquetFooter {
  const file = footerOf(tail);
  const elements = file.structs(2);
  const rows = file.int(3);
  const groups = file.structs(4);
  if (elements === undefined || rows === undefined || groups === undefined) throw malformed("the footer is incomplete");
  const { schema, leaves } = readSchema(elements);
  const createdBy = file.string(6);
  const orders = file.structs(7);
  const trusted = leaves.map((_, i) => orders?.[i]?.arm() === 1);
  const ours = createdBy?.startsWith("eider ") ?? false;
  return {
    schema,
    rows,
    rowGroups: groups.map((group) => ({ rows: group.int(3) ?? 0, bytes: group.int(6) ?? group.int(2) ?? 0 })),
    keyValues: new Map(file.structs(5)?.map((pair) => [pair.string(1) ?? "", pair.string(2) ?? ""])),
    createdBy,
    statistics: leaves.map((leaf, i) => sumUp(leaf, trusted[i]!, ours, groups, i)),
  };
}

/** FileMetaData, as it is stored. */
export function footerOf(tail: Uint8Array): ThriftStruct {
  return readThrift(footerThrift(tail));
}

/**
 * The footer as Thrift, without what follows it.
 * @throws InvalidInputError `bad_parquet`
 */
export function footerThrift(tail: Uint8Array): Uint8Array {
  const size = parquetFooterBytes(tail);
  if (size > tail.length) throw malformed(`its footer of ${size} bytes is not all there`);
  return tail.subarray(tail.length - size, tail.length - TRAILER_BYTES);
}

/** Where the pages of a column chunk lie in its file, by its ColumnMetaData (parquet.thrift). */
export function chunkExtent(meta: ThriftStruct | undefined): { readonly start: number; readonly end: number } {
  const data = meta?.int(9);
  const bytes = meta?.int(7);
  if (data === undefined || bytes === undefined) throw malformed("a column chunk has no metadata");
  // A dictionary comes first; some writers say 0 where there is none.
  const start = Math.min(meta?.int(11) || data, data);
  return { start, end: start + bytes };
}

function sumUp(
  leaf: StoredLeaf,
  trusted: boolean,
  ours: boolean,
  groups: readonly ThriftStruct[],
  index: number,
): ColumnStatistics | undefined {
  let valueCount = 0;
  let nullCount = 0;
  let storedBytes = 0;
  let bounds = NO_BOUNDS;
  for (const group of groups) {
    const meta = group.structs(1)?.[index]?.struct(3);
    const values = meta?.int(5);
    if (meta === undefined || values === undefined) throw malformed("a column chunk has no metadata");
    const statistics = meta.struct(12);
    const nulls = leaf.required ? 0 : statistics?.int(3);
    if (nulls === undefined && values > 0) return undefined;
    valueCount += values;
    nullCount += nulls ?? 0;
    storedBytes += meta.int(7) ?? 0;
    bounds = mergeBounds(bounds, chunkBounds(leaf, trusted ? statistics : undefined, values - (nulls ?? 0), ours));
  }
  const { min, max, minExact, maxExact, hasNaN } = bounds;
  return {
    fieldId: leaf.field.id,
    valueCount,
    nullCount,
    hasNaN,
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    minExact,
    maxExact,
    storedBytes,
  };
}

function chunkBounds(leaf: StoredLeaf, statistics: ThriftStruct | undefined, values: number, ours: boolean): Bounds {
  if (values === 0) return NO_BOUNDS;
  const max = readBound(leaf, statistics?.binary(5));
  const min = readBound(leaf, statistics?.binary(6));
  const float = leaf.field.type.kind === "float32" || leaf.field.type.kind === "float64";
  // Bounds of byte arrays may be cut without saying so.
  const exact = leaf.physical !== PhysicalType.byteArray && leaf.physical !== PhysicalType.fixedLenByteArray;
  return {
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    minExact: min !== undefined && (statistics?.bool(8) ?? exact),
    maxExact: max !== undefined && (statistics?.bool(7) ?? exact),
    // Our own files have no bounds beside NaN; other writers' bounds often ignore it.
    hasNaN: float && (!ours || min === undefined),
    values,
  };
}

/** A bound from its PLAIN bytes; undefined where it is absent or has not the size of its type. */
function readBound(leaf: StoredLeaf, bytes: Uint8Array | undefined): BoundValue | undefined {
  if (bytes === undefined || leaf.factor === 0n) return undefined;
  const { type } = leaf.field;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (leaf.physical) {
    case PhysicalType.boolean:
      return bytes.length === 1 ? bytes[0] === 1 : undefined;
    case PhysicalType.int32:
      if (bytes.length !== 4) return undefined;
      return BigInt(type.kind.startsWith("uint") ? view.getUint32(0, true) : view.getInt32(0, true)) * leaf.factor;
    case PhysicalType.int64:
      if (bytes.length !== 8) return undefined;
      return type.kind === "uint64" ? view.getBigUint64(0, true) : view.getBigInt64(0, true) * leaf.factor;
    case PhysicalType.float:
      return bytes.length === 4 ? floatBound(view.getFloat32(0, true)) : undefined;
    case PhysicalType.double:
      return bytes.length === 8 ? floatBound(view.getFloat64(0, true)) : undefined;
    default:
      if (type.kind !== "decimal") return bytes.slice();
      return bytes.length > 0 && bytes.length <= 32 ? bigEndian(bytes) : undefined;
  }
}

/** NaN is no bound; −0 is 0. */
function floatBound(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : value + 0;
}
