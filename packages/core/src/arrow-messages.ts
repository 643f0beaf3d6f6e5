/**
 * The metadata of Arrow IPC messages. Field numbers are the positions in the format's `Message.fbs`, `Schema.fbs` and
 * `File.fbs`.
 */

import { type ArrowField, type ArrowType, ArrowTypeId } from "./arrow-shape.js";
import { InvalidInputError } from "./errors.js";
import { FlatTable } from "./flatbuffers.js";

export interface SchemaMessage {
  readonly kind: "schema";
  readonly fields: readonly ArrowField[];
}

/** Lengths and places of a record batch's buffers in the message's body, depth first. */
export interface BatchHeader {
  readonly rows: number;
  /** Length and null count of each column and child. */
  readonly nodes: readonly (readonly number[])[];
  /** Offset and length of each buffer, in bytes. */
  readonly buffers: readonly (readonly number[])[];
  /** How many data buffers each view column has. */
  readonly viewBuffers: readonly (readonly number[])[];
  readonly compression: "lz4" | "zstd" | undefined;
}

export type ArrowMessage =
  | SchemaMessage
  | { readonly kind: "batch"; readonly batch: BatchHeader }
  | { readonly kind: "dictionary"; readonly id: number; readonly isDelta: boolean; readonly batch: BatchHeader };

/** A message, as it was written too, and its body. */
export interface ArrowPart {
  readonly message: ArrowMessage;
  readonly metadata: Uint8Array;
  readonly body: Uint8Array;
}

export function badArrow(what: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    "bad_arrow",
    `this is not valid Arrow IPC: ${what}`,
    cause === undefined ? {} : { cause },
  );
}

/** Fields of a schema at all levels together: more are not a schema but a trap. */
const MAX_FIELDS = 100_000;
const MAX_DEPTH = 100;

/** Reads the metadata of a message, and how many bytes its body has. */
export function readMessage(metadata: Uint8Array): { readonly message: ArrowMessage; readonly bodyBytes: number } {
  return guarded(() => {
    const root = FlatTable.root(metadata);
    const header = root.table(2);
    const bodyBytes = root.int64(3);
    if (header === undefined) throw badArrow("a message has no header");
    if (!(bodyBytes >= 0 && bodyBytes <= 0x7fffffff)) throw badArrow(`a message has a body of ${bodyBytes} bytes`);
    return { message: readHeader(root.int8(1, 0), header), bodyBytes };
  });
}

function readHeader(type: number, header: FlatTable): ArrowMessage {
  switch (type) {
    case 1:
      return { kind: "schema", fields: new FieldReader().schema(header) };
    case 2: {
      const batch = header.table(1);
      if (batch === undefined) throw badArrow("a dictionary has no values");
      return { kind: "dictionary", id: header.int64(0), isDelta: header.bool(2), batch: readBatch(batch) };
    }
    case 3:
      return { kind: "batch", batch: readBatch(header) };
    default:
      throw badArrow(`it holds a message of type ${type}, where only schemas, dictionaries and record batches may be`);
  }
}

function readBatch(table: FlatTable): BatchHeader {
  const compression = table.table(3);
  const codec = compression?.int8(0, 0);
  if (codec !== undefined && codec !== 0 && codec !== 1)
    throw badArrow(`it has buffers of the unknown compression ${codec}`);
  return {
    rows: table.int64(0),
    nodes: table.longs(1, 16),
    buffers: table.longs(2, 16),
    viewBuffers: table.longs(4, 8),
    compression: codec === undefined ? undefined : codec === 0 ? "lz4" : "zstd",
  };
}

/** Where a file keeps a message: offset, bytes of prefix and metadata, bytes of body. */
export interface FileBlock {
  readonly offset: number;
  readonly metadataBytes: number;
  readonly bodyBytes: number;
}

export interface FileFooter {
  readonly schema: ArrowPart;
  readonly dictionaries: readonly FileBlock[];
  readonly batches: readonly FileBlock[];
}

export function readFileFooter(footer: Uint8Array): FileFooter {
  return guarded(() => {
    const root = FlatTable.root(footer);
    const schema = root.table(1);
    if (schema === undefined) throw badArrow("its footer has no schema");
    const blocks = (field: number): FileBlock[] =>
      // The middle integer has 32 bits, padded.
      root.longs(field, 24).map(([offset, metadata, body]) => ({
        offset: offset!,
        metadataBytes: Number(BigInt.asIntN(32, BigInt(metadata!))),
        bodyBytes: body!,
      }));
    const message = { kind: "schema", fields: new FieldReader().schema(schema) } as const;
    return {
      schema: { message, metadata: schemaMetadata(footer, schema), body: new Uint8Array(0) },
      dictionaries: blocks(2),
      batches: blocks(3),
    };
  });
}

/** Bytes in front of a schema that make a message of it: more than they are, so that what follows lies on eight bytes. */
const MESSAGE_BYTES = 32;
/** MetadataVersion V5 and MessageHeader.Schema of `Message.fbs`. */
const VERSION = 4;
const SCHEMA_HEADER = 1;

/**
 * A message whose header is a schema that lies in a footer. Offsets count from their own place, so the footer is taken over
 * as it is, behind a root, its vtable and the message: version, type of the header, header.
 */
function schemaMetadata(footer: Uint8Array, schema: FlatTable): Uint8Array {
  const out = new Uint8Array(MESSAGE_BYTES + 8 * Math.ceil(footer.length / 8));
  out.set(footer, MESSAGE_BYTES);
  const view = new DataView(out.buffer);
  const [vtable, table, header, version, type] = [4, 16, 20, 24, 26];
  view.setUint32(0, table, true);
  for (const [i, value] of [10, 12, version - table, type - table, header - table].entries()) {
    view.setUint16(vtable + 2 * i, value, true);
  }
  view.setInt32(table, table - vtable, true);
  view.setUint32(header, MESSAGE_BYTES + schema.at - header, true);
  view.setInt16(version, VERSION, true);
  view.setInt8(type, SCHEMA_HEADER);
  return out;
}

/** Accesses outside of the metadata and text that is not UTF-8 are damage. */
function guarded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) throw badArrow("its metadata is damaged", error);
    throw error;
  }
}

class FieldReader {
  #fields = 0;

  schema(table: FlatTable): ArrowField[] {
    if (table.int16(0, 0) !== 0) throw badArrow("it is big-endian, which is not supported: write it little-endian");
    return table.tables(1).map((field) => this.#field(field, 1));
  }

  #field(table: FlatTable, depth: number): ArrowField {
    if (++this.#fields > MAX_FIELDS || depth > MAX_DEPTH) throw badArrow("its schema has too many or too deep fields");
    const children = table.tables(5).map((child) => this.#field(child, depth + 1));
    const type = readType(table.int8(2, 0), table.table(3), children);
    const dictionary = table.table(4);
    return {
      name: table.text(0) ?? "",
      nullable: table.bool(1),
      type: dictionary ? dictionaryType(dictionary, type) : type,
      metadata: new Map(table.tables(6).map((entry) => [entry.text(0) ?? "", entry.text(1) ?? ""])),
    };
  }
}

function dictionaryType(encoding: FlatTable, values: ArrowType): ArrowType {
  const indices = encoding.table(1);
  return {
    typeId: ArrowTypeId.dictionary,
    dictionaryId: encoding.int64(0),
    // The default is a signed 32-bit integer.
    indices: indices
      ? readType(ArrowTypeId.int, indices, [])
      : { typeId: ArrowTypeId.int, bitWidth: 32, isSigned: true },
    dictionary: values,
  };
}

/** Parameters by the type's own table; defaults are the format's. */
function readType(typeId: number, table: FlatTable | undefined, children: readonly ArrowField[]): ArrowType {
  const base = { typeId, children };
  const width = (): number => table?.int32(0, 0) ?? 0;
  // Those below are none of the format's: ArrowTypeId has the dictionary among them, which a field says otherwise.
  if (typeId < ArrowTypeId.null) throw badArrow(`it has a type of the unknown number ${typeId}`);
  switch (typeId) {
    case ArrowTypeId.int: {
      const bitWidth = width();
      if (![8, 16, 32, 64].includes(bitWidth)) throw badArrow(`it has integers of ${bitWidth} bits`);
      return { ...base, bitWidth, isSigned: table?.bool(1) ?? false };
    }
    case ArrowTypeId.float:
      return { ...base, precision: table?.int16(0, 0) ?? 0 };
    case ArrowTypeId.decimal: {
      const bitWidth = table?.int32(2, 128) ?? 128;
      if (![32, 64, 128, 256].includes(bitWidth)) throw badArrow(`it has decimals of ${bitWidth} bits`);
      return { ...base, precision: width(), scale: table?.int32(1, 0) ?? 0, bitWidth };
    }
    case ArrowTypeId.date:
      return { ...base, unit: table?.int16(0, 1) ?? 1 };
    case ArrowTypeId.time:
      return { ...base, unit: unitOf(table?.int16(0, 1) ?? 1) };
    case ArrowTypeId.timestamp:
      return { ...base, unit: unitOf(table?.int16(0, 0) ?? 0), timezone: table?.text(1) ?? null };
    case ArrowTypeId.fixedSizeBinary:
      return { ...base, byteWidth: width() };
    case ArrowTypeId.fixedSizeList:
      return { ...requireChildren(base, 1), listSize: width() };
    case ArrowTypeId.list:
    case ArrowTypeId.largeList:
      return requireChildren(base, 1);
    case ArrowTypeId.map:
      if (children[0]?.type.children?.length !== 2) throw badArrow("it has a map without keys or values");
      return requireChildren(base, 1);
    default:
      return base;
  }
}

function unitOf(unit: number): number {
  if (unit < 0 || unit > 3) throw badArrow(`it has times in the unknown unit ${unit}`);
  return unit;
}

function requireChildren<T extends { readonly children: readonly ArrowField[] }>(type: T, count: number): T {
  if (type.children.length !== count) throw badArrow("it has a list without elements");
  return type;
}
