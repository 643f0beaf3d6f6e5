/**
 * One record batch as one Arrow IPC message (columnar format, "Encapsulated message format" and "RecordBatch message"),
 * without its schema, which is kept elsewhere: what a small batch of rows is stored as. Behind a schema message and before
 * an end marker any Arrow library reads it. Nothing is compressed, and all columns are in the layout of {@link Column}.
 */

import { readMessage } from "./arrow-messages.js";
import { bitmapBytes } from "./bitmap.js";
import type { Column, RecordBatch } from "./columns.js";
import { CorruptionError } from "./errors.js";
import { bytesOf, layoutOf, typedValues, valueBytes } from "./layout.js";
import { childFields, type DataType, type Schema, storedSchema } from "./schema.js";

/** `MetadataVersion.V5` and `MessageHeader.RecordBatch` of the format's `Message.fbs`. */
const VERSION = 4;
const RECORD_BATCH = 3;

/**
 * Where the parts of the metadata lie, which are the same in every message: offsets from its start, of the tables `Message`
 * and `RecordBatch` and their vtables, and of the vector of nodes, behind which that of buffers begins.
 */
const MESSAGE_VTABLE = 4;
const MESSAGE = 16;
const BATCH_VTABLE = 40;
const BATCH = 56;
const NODES = 76;
/** The marker and the metadata's length before it. */
const PREFIX = 8;

const EMPTY = new Uint8Array(0);

interface Parts {
  /** Length and null count of each column and child, depth first. */
  readonly nodes: [number, number][];
  readonly buffers: Uint8Array[];
}

/** The message; the batch's own schema is needed to read it again. */
export function encodeRecordBatch(batch: RecordBatch): Uint8Array {
  const parts: Parts = { nodes: [], buffers: [] };
  for (const column of batch.columns) collect(column, parts);
  const { nodes, buffers } = parts;
  const buffersAt = NODES + 4 + 16 * nodes.length + 4;
  const bodyAt = PREFIX + buffersAt + 4 + 16 * buffers.length;
  const out = new Uint8Array(buffers.reduce((at, buffer) => padded(at + buffer.length), bodyAt));
  const view = new DataView(out.buffer);
  view.setInt32(0, -1, true);
  view.setInt32(4, bodyAt - PREFIX, true);
  const u16 = (at: number, ...values: number[]): void =>
    values.forEach((value, i) => {
      view.setUint16(PREFIX + at + 2 * i, value, true);
    });
  const u32 = (at: number, value: number): void => view.setUint32(PREFIX + at, value, true);
  const i64 = (at: number, value: number): void => view.setBigInt64(PREFIX + at, BigInt(value), true);
  u32(0, MESSAGE);
  // Of a vtable: its size, its table's, and where in the table each field lies.
  u16(MESSAGE_VTABLE, 12, 20, 16, 18, 4, 8);
  u32(MESSAGE, MESSAGE - MESSAGE_VTABLE);
  u32(MESSAGE + 4, BATCH - (MESSAGE + 4));
  i64(MESSAGE + 8, out.length - bodyAt);
  u16(MESSAGE + 16, VERSION, RECORD_BATCH);
  u16(BATCH_VTABLE, 10, 20, 8, 4, 16);
  u32(BATCH, BATCH - BATCH_VTABLE);
  u32(BATCH + 4, NODES - (BATCH + 4));
  i64(BATCH + 8, batch.length);
  u32(BATCH + 16, buffersAt - (BATCH + 16));
  u32(NODES, nodes.length);
  nodes.forEach(([length, nullCount], i) => {
    i64(NODES + 4 + 16 * i, length);
    i64(NODES + 12 + 16 * i, nullCount);
  });
  u32(buffersAt, buffers.length);
  let at = bodyAt;
  buffers.forEach((buffer, i) => {
    i64(buffersAt + 4 + 16 * i, at - bodyAt);
    i64(buffersAt + 12 + 16 * i, buffer.length);
    out.set(buffer, at);
    at = padded(at + buffer.length);
  });
  return out;
}

/** Buffers begin at multiples of 8 bytes. */
function padded(at: number): number {
  return (at + 7) & ~7;
}

function collect(column: Column, parts: Parts): void {
  const { type, length, nullCount, validity, values, offsets, children } = column;
  parts.nodes.push([length, nullCount]);
  parts.buffers.push(nullCount > 0 && validity ? validity.subarray(0, bitmapBytes(length)) : EMPTY);
  const layout = layoutOf(type);
  if (offsets) parts.buffers.push(bytesOf(offsets.subarray(0, length + 1)));
  if (layout === "bits") parts.buffers.push(bytesOf(values!).subarray(0, bitmapBytes(length)));
  if (layout === "fixed") parts.buffers.push(bytesOf(values!).subarray(0, length * valueBytes(type)));
  if (layout === "bytes") parts.buffers.push(bytesOf(values!).subarray(0, offsets![length]!));
  if (layout === "map") {
    // A list of structs of key and value.
    const entries = children[0]!.length;
    parts.nodes.push([entries, 0]);
    parts.buffers.push(EMPTY);
  }
  for (const child of children) collect(child, parts);
}

/**
 * Reads a message of {@link encodeRecordBatch}; its columns share the bytes where they are aligned.
 * @param schema that of the batch; its unknown fields are not in it
 * @throws CorruptionError `damaged_batch`
 */
export function decodeRecordBatch(schema: Schema, bytes: Uint8Array): RecordBatch {
  const stored = storedSchema(schema);
  try {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const bodyAt = PREFIX + view.getInt32(4, true);
    if (view.getInt32(0, true) !== -1 || bodyAt < PREFIX || bodyAt > bytes.length) throw new RangeError("no message");
    const { message } = readMessage(bytes.subarray(PREFIX, bodyAt));
    if (message.kind !== "batch") throw new RangeError(`a message of kind ${message.kind}`);
    const { rows, nodes, buffers } = message.batch;
    const reader = new BodyReader(nodes, buffers, bytes.subarray(bodyAt));
    const columns = stored.fields.map(({ type }) => reader.column(type, rows));
    reader.end();
    return { schema: stored, length: rows, columns };
  } catch (cause) {
    throw new CorruptionError("damaged_batch", "a stored batch of rows cannot be read: stop writing and run verify", {
      cause,
    });
  }
}

/** Hands out nodes and buffers in the order of the format; anything that does not fit is a RangeError. */
class BodyReader {
  readonly #nodes: readonly (readonly number[])[];
  readonly #buffers: readonly (readonly number[])[];
  readonly #body: Uint8Array;
  #node = 0;
  #buffer = 0;

  constructor(nodes: readonly (readonly number[])[], buffers: readonly (readonly number[])[], body: Uint8Array) {
    this.#nodes = nodes;
    this.#buffers = buffers;
    this.#body = body;
  }

  column(type: DataType, length: number): Column {
    const [count, nullCount = 0] = this.#nodes[this.#node++] ?? [];
    require(count === length && nullCount >= 0 && nullCount <= length, "a column's length");
    const bitmap = this.#next();
    if (nullCount > 0) require(bitmap.length === bitmapBytes(length), "a validity bitmap");
    const validity = nullCount > 0 ? bitmap : undefined;
    const base = { type, length, nullCount, validity };
    const layout = layoutOf(type);
    switch (layout) {
      case "bits":
        return { ...base, values: this.#sized(bitmapBytes(length)), offsets: undefined, children: [] };
      case "fixed": {
        const values = typedValues(type, this.#sized(length * valueBytes(type)));
        return { ...base, values, offsets: undefined, children: [] };
      }
      case "bytes": {
        const offsets = this.#offsets(length);
        return { ...base, values: this.#sized(offsets[length]!), offsets, children: [] };
      }
      case "struct":
        return { ...base, values: undefined, offsets: undefined, children: this.#children(type, length) };
      default: {
        const offsets = this.#offsets(length);
        const elements = offsets[length]!;
        if (layout === "map") {
          require(this.#nodes[this.#node++]?.[0] === elements, "the entries of a map");
          this.#next();
        }
        return { ...base, values: undefined, offsets, children: this.#children(type, elements) };
      }
    }
  }

  /** All of the message was read. */
  end(): void {
    require(this.#node === this.#nodes.length && this.#buffer === this.#buffers.length, "the number of columns");
  }

  #children(type: DataType, length: number): Column[] {
    return childFields(type).map((child) => this.column(child.type, length));
  }

  #next(): Uint8Array {
    const [offset = -1, length = -1] = this.#buffers[this.#buffer++] ?? [];
    require(offset >= 0 && length >= 0 && offset + length <= this.#body.length, "a buffer's place");
    return this.#body.subarray(offset, offset + length);
  }

  #sized(bytes: number): Uint8Array {
    const buffer = this.#next();
    require(buffer.length === bytes, "a buffer's size");
    return buffer;
  }

  #offsets(length: number): Int32Array {
    const offsets = typedValues({ kind: "int32" }, this.#sized(4 * (length + 1))) as Int32Array;
    let last = 0;
    for (const offset of offsets) {
      require(offset >= last, "offsets");
      last = offset;
    }
    require(offsets[0] === 0, "offsets");
    return offsets;
  }
}

function require(holds: boolean, what: string): void {
  if (!holds) throw new RangeError(`${what} cannot be right`);
}
