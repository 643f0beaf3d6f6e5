/**
 * What we read of Apache Arrow objects, by shape: `instanceof` fails between two copies of the library, and this way
 * appending Arrow data does not load it.
 */

/** A Table or RecordBatch of any copy of `apache-arrow`. */
export interface ArrowLike {
  readonly schema: { readonly fields: readonly { readonly name: string }[] };
  readonly numRows: number;
}

/** `Type` of the JavaScript library; the numbers are those of the Arrow format's union `Type`. */
export const ArrowTypeId = {
  dictionary: -1,
  null: 1,
  int: 2,
  float: 3,
  binary: 4,
  utf8: 5,
  bool: 6,
  decimal: 7,
  date: 8,
  time: 9,
  timestamp: 10,
  interval: 11,
  list: 12,
  struct: 13,
  union: 14,
  fixedSizeBinary: 15,
  fixedSizeList: 16,
  map: 17,
  duration: 18,
  largeBinary: 19,
  largeUtf8: 20,
  largeList: 21,
  binaryView: 23,
  utf8View: 24,
} as const;

export interface ArrowField {
  readonly name: string;
  readonly nullable: boolean;
  readonly type: ArrowType;
  readonly metadata?: ReadonlyMap<string, string>;
}

/** Each type has some of these. */
export interface ArrowType {
  readonly typeId: number;
  readonly children?: readonly ArrowField[];
  readonly bitWidth?: number;
  readonly isSigned?: boolean;
  /** Digits of a decimal; 0 half, 1 single, 2 double of a float. */
  readonly precision?: number;
  readonly scale?: number;
  /** Dates: 0 days, 1 milliseconds. Times and timestamps: 0 s, 1 ms, 2 µs, 3 ns. */
  readonly unit?: number;
  readonly timezone?: string | null;
  readonly byteWidth?: number;
  readonly listSize?: number;
  /** Of a dictionary: the types of its indices and of its values, and its number in IPC. */
  readonly indices?: ArrowType;
  readonly dictionary?: ArrowType;
  readonly dictionaryId?: number;
}

/**
 * One chunk of a column. Values, offsets, and children of structs and fixed-size lists begin at the chunk's first
 * value; bitmaps (validity, bool) begin `offset` bits before it.
 */
export interface ArrowData {
  readonly type: ArrowType;
  readonly length: number;
  readonly offset: number;
  readonly nullCount: number;
  readonly nullBitmap?: Uint8Array | null;
  readonly values?: ArrayBufferView | null;
  readonly valueOffsets?: ArrayBufferView | null;
  readonly children: readonly ArrowData[];
  readonly dictionary?: ArrowDictionary;
  readonly variadicBuffers?: readonly Uint8Array[];
}

/** The values of a dictionary; a delta adds a chunk. */
export interface ArrowDictionary {
  readonly data: readonly ArrowData[];
}

export interface ArrowBatch {
  readonly numRows: number;
  readonly data: { readonly children: readonly ArrowData[] };
}

/** Whether a value is an Arrow Table or RecordBatch, of whatever copy of the library. */
export function isArrowLike(value: unknown): value is ArrowLike {
  if (typeof value !== "object" || value === null) return false;
  const { schema, batches, data } = value as { schema?: unknown; batches?: unknown; data?: unknown };
  if (typeof schema !== "object" || schema === null) return false;
  const { fields } = schema as { fields?: unknown };
  if (!Array.isArray(fields) || !fields.every(isField)) return false;
  return Array.isArray(batches) || (typeof data === "object" && data !== null && "children" in data);
}

function isField(value: unknown): value is ArrowField {
  if (typeof value !== "object" || value === null) return false;
  const { name, type } = value as { name?: unknown; type?: { typeId?: unknown } };
  return typeof name === "string" && typeof type?.typeId === "number";
}

/** The batches of a table, or the batch itself. */
export function batchesOf(source: ArrowLike): readonly ArrowBatch[] {
  const { batches } = source as { batches?: readonly ArrowBatch[] };
  return batches ?? [source as unknown as ArrowBatch];
}

export function fieldsOf(source: ArrowLike): readonly ArrowField[] {
  return source.schema.fields as readonly ArrowField[];
}

/** Values `[start, start + length)` of a chunk. */
export function sliceData(data: ArrowData, start: number, length: number): ArrowData {
  const { type } = data;
  const offset = data.offset + start;
  const base = { ...shapeOf(data), offset, length, nullCount: data.nullCount === 0 ? 0 : -1 };
  switch (type.typeId) {
    case ArrowTypeId.bool:
    case ArrowTypeId.null:
      return base;
    case ArrowTypeId.utf8:
    case ArrowTypeId.binary:
    case ArrowTypeId.list:
    case ArrowTypeId.map:
      return { ...base, valueOffsets: cut(data.valueOffsets, start, length + 1, 4) };
    case ArrowTypeId.largeUtf8:
    case ArrowTypeId.largeBinary:
    case ArrowTypeId.largeList:
      return { ...base, valueOffsets: cut(data.valueOffsets, start, length + 1, 8) };
    case ArrowTypeId.struct:
      return { ...base, children: data.children.map((child) => sliceData(child, start, length)) };
    case ArrowTypeId.fixedSizeList: {
      const size = type.listSize ?? 0;
      return { ...base, children: data.children.map((child) => sliceData(child, start * size, length * size)) };
    }
    default:
      return { ...base, values: cut(data.values, start, length, valueWidth(type)) };
  }
}

/** The properties that matter: those of the library's objects are not all their own. */
function shapeOf(data: ArrowData): ArrowData {
  const { type, length, offset, nullCount, nullBitmap, values, valueOffsets, children, dictionary, variadicBuffers } =
    data;
  return {
    type,
    length,
    offset,
    nullCount,
    children,
    ...(nullBitmap && { nullBitmap }),
    ...(values && { values }),
    ...(valueOffsets && { valueOffsets }),
    ...(dictionary && { dictionary }),
    ...(variadicBuffers && { variadicBuffers }),
  };
}

function cut(values: ArrayBufferView | null | undefined, start: number, length: number, width: number): Uint8Array {
  if (!values) return new Uint8Array(0);
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return bytes.subarray(start * width, (start + length) * width);
}

/** Bytes per value of types without offsets and children. */
export function valueWidth(type: ArrowType): number {
  switch (type.typeId) {
    case ArrowTypeId.dictionary:
      return valueWidth(type.indices!);
    case ArrowTypeId.float:
      return 2 << (type.precision ?? 2);
    case ArrowTypeId.date:
      return type.unit === 0 ? 4 : 8;
    case ArrowTypeId.time:
      return (type.unit ?? 2) < 2 ? 4 : 8;
    case ArrowTypeId.timestamp:
      return 8;
    case ArrowTypeId.fixedSizeBinary:
      return type.byteWidth ?? 0;
    case ArrowTypeId.utf8View:
    case ArrowTypeId.binaryView:
      return 16;
    case ArrowTypeId.decimal:
      return (type.bitWidth ?? 128) / 8;
    default:
      return (type.bitWidth ?? 64) / 8;
  }
}
