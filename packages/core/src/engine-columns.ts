/** Columns out of the engine's memory and into it. */

import { bitmapBytes, isValid } from "./bitmap.js";
import type { Column, ColumnValues, RecordBatch } from "./columns.js";
import type { Engine } from "./engine.js";
import { NODE, type PlanNode } from "./engine-plan.js";
import { bytesOf, layoutOf, typedValues, valueBytes } from "./layout.js";
import { type DataType, type Schema, storedType } from "./schema.js";

/** A column in the engine's memory, valid until its arena is reset. Addresses in bytes; 0 for what it does not have. */
export interface EngineColumn {
  readonly length: number;
  readonly nullCount: number;
  /** Bits beyond {@link validityBits} are ones, and so may be those beyond the length. */
  readonly validity: number;
  readonly validityBits: number;
  readonly values: number;
  /** string, json, binary: bytes of all values. */
  readonly end: number;
  readonly offsets: number;
}

/** Where the column of a node is. */
export function engineColumn(engine: Engine, node: PlanNode): EngineColumn {
  const { words } = engine;
  const at = node.address >>> 2;
  return {
    length: words[at + NODE.length]!,
    nullCount: words[at + NODE.nulls]!,
    validity: words[at + NODE.validity]!,
    validityBits: words[at + NODE.validityCapacity]!,
    values: words[at + NODE.values]!,
    end: words[at + NODE.end]!,
    offsets: words[at + NODE.offsets]!,
  };
}

/** Tells the engine how many values a column has, of which the last ones were written from outside. */
export function setLength(engine: Engine, node: PlanNode, length: number): void {
  engine.words[(node.address >>> 2) + NODE.length] = length;
}

/** Copies of the columns that a node's children are, without those that are not stored. */
export function copyChildren(engine: Engine, node: PlanNode): Column[] {
  const columns: Column[] = [];
  for (const child of node.children) {
    const column = copyColumn(engine, child);
    if (column) columns.push(column);
  }
  return columns;
}

function copyColumn(engine: Engine, node: PlanNode): Column | undefined {
  const type = storedType(node.type);
  if (type === undefined) return undefined;
  const { length, nullCount, validity, validityBits, values, end, offsets } = engineColumn(engine, node);
  const { bytes } = engine;
  const layout = layoutOf(type);
  const column = {
    type,
    length,
    nullCount,
    validity: nullCount === 0 ? undefined : copyValidity(bytes, validity, validityBits, length),
    values: undefined,
    offsets: undefined,
    children: [],
  };
  switch (layout) {
    case "bits": {
      const bits = bytes.slice(values, values + bitmapBytes(length));
      clearRest(bits, length);
      return { ...column, values: bits };
    }
    case "fixed":
      return { ...column, values: typedValues(type, bytes.slice(values, values + length * valueBytes(type))) };
    case "bytes":
      return {
        ...column,
        values: bytes.slice(values, values + end),
        offsets: copyOffsets(bytes, offsets, length),
      };
    case "struct":
      return { ...column, children: copyChildren(engine, node) };
    default:
      return { ...column, offsets: copyOffsets(bytes, offsets, length), children: copyChildren(engine, node) };
  }
}

/** A batch that lies in the engine's memory: lent, until the arena is reset. For who reads it there without a copy. */
export class LentBatch implements RecordBatch {
  readonly schema: Schema;
  readonly length: number;
  readonly columns: readonly Column[];
  readonly engine: Engine;

  /** @param node a struct whose columns are complete, with whole validity */
  constructor(engine: Engine, node: PlanNode, schema: Schema, length: number) {
    this.engine = engine;
    this.schema = schema;
    this.length = length;
    this.columns = lentChildren(engine, node);
  }
}

function lentChildren(engine: Engine, node: PlanNode): Column[] {
  const columns: Column[] = [];
  for (const child of node.children) {
    const type = storedType(child.type);
    if (type !== undefined) columns.push(new LentColumn(engine, child, type));
  }
  return columns;
}

/** Views are made when they are asked for: they are lost whenever the memory grows, addresses are not. */
class LentColumn implements Column {
  readonly type: DataType;
  readonly length: number;
  readonly nullCount: number;
  readonly children: readonly Column[];
  readonly #engine: Engine;
  readonly #place: EngineColumn;

  constructor(engine: Engine, node: PlanNode, type: DataType) {
    this.#engine = engine;
    this.#place = engineColumn(engine, node);
    this.type = type;
    this.length = this.#place.length;
    this.nullCount = this.#place.nullCount;
    this.children = lentChildren(engine, node);
  }

  get validity(): Uint8Array | undefined {
    return this.nullCount === 0 ? undefined : this.#view(this.#place.validity, bitmapBytes(this.length));
  }

  get values(): ColumnValues | undefined {
    const { values, end } = this.#place;
    switch (layoutOf(this.type)) {
      case "bits":
        return this.#view(values, bitmapBytes(this.length));
      case "fixed":
        return typedValues(this.type, this.#view(values, this.length * valueBytes(this.type)));
      case "bytes":
        return this.#view(values, end);
      default:
        return undefined;
    }
  }

  get offsets(): Int32Array | undefined {
    const layout = layoutOf(this.type);
    if (layout === "bits" || layout === "fixed" || layout === "struct") return undefined;
    if (this.length === 0) return new Int32Array(1);
    return new Int32Array(this.#engine.exports.memory.buffer, this.#place.offsets, this.length + 1);
  }

  #view(address: number, size: number): Uint8Array {
    return new Uint8Array(this.#engine.exports.memory.buffer, address, size);
  }
}

function copyOffsets(bytes: Uint8Array, address: number, length: number): Int32Array {
  return length === 0 ? new Int32Array(1) : new Int32Array(bytes.slice(address, address + (length + 1) * 4).buffer);
}

function copyValidity(bytes: Uint8Array, address: number, bits: number, length: number): Uint8Array {
  const size = bitmapBytes(length);
  const written = Math.min(bits >>> 3, size);
  let validity = bytes.slice(address, address + written);
  if (written < size) {
    const whole = new Uint8Array(size).fill(0xff, written);
    whole.set(validity);
    validity = whole;
  }
  clearRest(validity, length);
  return validity;
}

/** Bits beyond the last value are zero, as Arrow recommends, so that equal columns have equal bytes. */
function clearRest(bits: Uint8Array, length: number): void {
  if ((length & 7) !== 0) bits[bits.length - 1]! &= (1 << (length & 7)) - 1;
}

/** Appends `count` rows of columns, one per child of `node` that is stored, behind the first `start` values of each. */
export function appendChildren(
  engine: Engine,
  node: PlanNode,
  columns: readonly Column[],
  start: number,
  count: number,
): void {
  let next = 0;
  for (const child of node.children) {
    if (storedType(child.type) === undefined) engine.exports.reserve(child.address, start + count, 0, 0);
    else appendColumn(engine, child, columns[next++]!, start);
  }
}

function appendColumn(engine: Engine, node: PlanNode, column: Column, start: number): void {
  const { exports } = engine;
  const { length, values, offsets, nullCount, validity, children } = column;
  const { address } = node;
  const layout = layoutOf(column.type);
  exports.reserve(address, start, length, layout === "bytes" ? values!.byteLength : 0);
  const target = engineColumn(engine, node);
  const { bytes, words } = engine;
  switch (layout) {
    case "bits":
      for (let i = 0; i < length; i++) writeBit(bytes, target.values, start + i, isValid(values as Uint8Array, i));
      break;
    case "fixed":
      bytes.set(bytesOf(values!), target.values + start * valueBytes(column.type));
      break;
    case "bytes":
      bytes.set(values as Uint8Array, target.values + target.end);
      appendOffsets(words, target, offsets!, start, target.end);
      words[(address >>> 2) + NODE.end] = target.end + values!.byteLength;
      break;
    case "struct":
      appendChildren(engine, node, children, start, length);
      break;
    default: {
      const first = start === 0 ? 0 : words[(target.offsets >>> 2) + start]!;
      appendOffsets(words, target, offsets!, start, first);
      appendChildren(engine, node, children, first, offsets![length]!);
    }
  }
  setLength(engine, node, start + length);
  if (nullCount > 0) {
    for (let i = 0; i < length; i++) if (!isValid(validity, i)) exports.markNull(address, start + i);
  }
}

function appendOffsets(
  words: Uint32Array,
  target: EngineColumn,
  offsets: Int32Array,
  start: number,
  first: number,
): void {
  const at = (target.offsets >>> 2) + start;
  for (let i = 1; i < offsets.length; i++) words[at + i] = first + offsets[i]!;
}

function writeBit(bytes: Uint8Array, address: number, index: number, value: boolean): void {
  const at = address + (index >>> 3);
  const mask = 1 << (index & 7);
  if (value) bytes[at]! |= mask;
  else bytes[at]! &= ~mask;
}
