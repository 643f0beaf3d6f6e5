/** A schema laid out in the engine's memory: what its parser reads, and where its columns are. See `assembly/node.ts`. */

import type { Engine } from "./engine.js";
import { fieldName } from "./json-keys.js";
import { childPath } from "./json-values.js";
import { valueBytes } from "./layout.js";
import { type DataType, type Field, nameKey, type Schema } from "./schema.js";
import { INTEGER_RANGES } from "./text-values.js";

/** Numbers of types, as in `assembly/node.ts`. */
const TYPES: Readonly<Record<DataType["kind"], number>> = {
  bool: 0,
  int8: 1,
  int16: 2,
  int32: 3,
  uint8: 4,
  uint16: 5,
  uint32: 6,
  int64: 7,
  uint64: 8,
  float32: 9,
  float64: 10,
  decimal: 11,
  string: 12,
  json: 13,
  binary: 14,
  date: 15,
  time: 16,
  timestamp: 17,
  timestamptz: 18,
  uuid: 19,
  fixed: 20,
  struct: 21,
  list: 22,
  map: 23,
  unknown: 24,
};

/** Words of a node that TypeScript reads, as in `assembly/node.ts`. */
export const NODE = { length: 2, nulls: 3, values: 4, offsets: 6, validity: 7, validityCapacity: 8, end: 9 } as const;
const NODE_BYTES = 96;
const NULLABLE = 1;
const SLOW = 2;

/** Header of a spelling, as in `assembly/keys.ts`; its text follows. */
const SPELLING_BYTES = 32;
const DROPPED_WORD = 5;
/** Readers look at 16 bytes at once. */
const VECTOR_BYTES = 16;

/** Memory is asked for in pieces of at least this size. */
const SLAB_BYTES = 16 * 1024;
/** Room for spellings that are learned from the input. */
const LEARNED_BYTES = 64 * 1024;
/** Free places for learned spellings in the table of each struct, beyond as many as it has fields. */
const LEARNED_SLOTS = 32;

/** A column, and where it is. */
export interface PlanNode {
  readonly address: number;
  readonly type: DataType;
  readonly nullable: boolean;
  /** The column as messages name it; empty for the row itself. */
  readonly path: string;
  readonly children: readonly PlanNode[];
}

/** A struct's keys. */
interface Keys {
  readonly node: PlanNode;
  /** Fields by name without case. */
  readonly fields: ReadonlyMap<string, number>;
  /** Spellings that its table has room for. */
  room: number;
}

export class EnginePlan {
  readonly root: PlanNode;
  /** Where memory is free behind the plan. */
  readonly end: number;
  readonly #engine: Engine;
  readonly #keys: Map<number, Keys> = new Map();
  /** Spellings whose values are dropped, by what to call the key. */
  readonly #dropped: { readonly path: string; readonly address: number }[] = [];
  #top: number;
  /** Up to here memory is zeros, from {@link #top} on. */
  #zeroed: number;
  readonly #learnedEnd: number;

  constructor(engine: Engine, schema: Schema) {
    this.#engine = engine;
    this.#top = engine.base;
    this.#zeroed = engine.base;
    this.root = this.#node({ kind: "struct", fields: schema.fields }, false, "");
    const planEnd = this.#top;
    this.#learnedEnd = this.#take(LEARNED_BYTES) + LEARNED_BYTES;
    this.#top = planEnd;
    this.end = this.#learnedEnd;
  }

  /**
   * Learns a key that the engine did not know, without its quotes as it is written.
   * @param ignore whether values of keys that the schema lacks are dropped
   * @returns false if the engine cannot take the key
   */
  learn(node: number, written: Uint8Array, key: string, ignore: boolean): boolean {
    const keys = this.#keys.get(node);
    const size = SPELLING_BYTES + align(written.length + 1 + VECTOR_BYTES);
    if (!keys || keys.room === 0 || this.#top + size > this.#learnedEnd) return false;
    const name = fieldName(key);
    const field = keys.fields.get(nameKey(name));
    if (field === undefined && !ignore) return false;
    const child = field === undefined ? undefined : keys.node.children[field]!;
    const quoted = new Uint8Array(written.length + 1);
    quoted.set(written);
    quoted[written.length] = 0x22;
    const address = this.#spelling(keys, quoted, child);
    if (!child) this.#dropped.push({ path: childPath(keys.node.path, name), address });
    return true;
  }

  /** Values dropped so far, by key. */
  *dropped(): Iterable<readonly [path: string, count: number]> {
    const { words } = this.#engine;
    for (const { path, address } of this.#dropped) {
      const count = words[(address >>> 2) + DROPPED_WORD]!;
      if (count > 0) yield [path, count];
    }
  }

  /** Memory of zeros. */
  #take(size: number): number {
    const address = this.#top;
    this.#top = address + align(size);
    if (this.#top > this.#zeroed) {
      // Slab by slab, because the memory's views are made anew whenever it grows.
      const end = this.#top + SLAB_BYTES;
      this.#engine.exports.reach(end);
      this.#engine.bytes.fill(0, this.#zeroed, end);
      this.#zeroed = end;
    }
    return address;
  }

  #node(type: DataType, nullable: boolean, path: string): PlanNode {
    const address = this.#take(NODE_BYTES);
    const children = childrenOf(type).map(({ name, field }) =>
      this.#node(field.type, field.nullable, type.kind === "struct" ? childPath(path, name) : `${path}[]`),
    );
    const node: PlanNode = { address, type, nullable, path, children };
    const pointers = this.#take(children.length * 4);
    const slow = type.kind === "map" && type.key.type.kind !== "string";
    const { words } = this.#engine;
    const at = address >>> 2;
    words[at] = TYPES[type.kind];
    words[at + 1] = (nullable ? NULLABLE : 0) | (slow ? SLOW : 0);
    words[at + 11] = pointers;
    words[at + 12] = children.length;
    words[at + 17] = valueBytes(type);
    for (const [i, child] of children.entries()) words[(pointers >>> 2) + i] = child.address;
    for (const [i, bound] of boundsOf(type).entries()) {
      words[at + 18 + 2 * i] = bound;
      words[at + 19 + 2 * i] = Math.floor(bound / 2 ** 32);
    }
    if (type.kind === "struct") this.#struct(node, type.fields);
    return node;
  }

  #struct(node: PlanNode, fields: readonly Field[]): void {
    let slots = 64;
    while (slots < 4 * (fields.length + LEARNED_SLOTS)) slots *= 2;
    const table = this.#take(slots * 4);
    // A spelling that nothing is equal to: what is expected before any key was seen.
    const nothing = this.#take(SPELLING_BYTES + 2 * VECTOR_BYTES);
    const { words } = this.#engine;
    const at = node.address >>> 2;
    words[at + 13] = table;
    words[at + 14] = slots - 1;
    words[at + 16] = fields.filter((field) => !field.nullable).length;
    words[(nothing >>> 2) + 2] = 1;
    words[(nothing >>> 2) + 3] = 1;
    words[nothing >>> 2] = nothing;
    words[at + 15] = nothing;
    const keys: Keys = {
      node,
      fields: new Map(fields.map(({ name }, i) => [nameKey(name), i])),
      room: fields.length + LEARNED_SLOTS + fields.length,
    };
    this.#keys.set(node.address, keys);
    let place = at + 15;
    for (const [i, { name }] of fields.entries()) {
      // The name as JSON.stringify escapes it, which is how most writers do; other escapes are learned.
      const address = this.#spelling(keys, encoder.encode(JSON.stringify(name).slice(1)), node.children[i]!);
      this.#engine.words[place] = address;
      place = address >>> 2;
    }
  }

  /** `written`: the key as it is written, with its closing quote. */
  #spelling(keys: Keys, written: Uint8Array, child: PlanNode | undefined): number {
    const address = this.#take(SPELLING_BYTES + written.length + VECTOR_BYTES);
    const { words } = this.#engine;
    const at = address >>> 2;
    // What is expected next must be some spelling: itself, until the next key is seen.
    words[at] = address;
    words[at + 1] = child?.address ?? 0;
    words[at + 2] = written.length;
    words[at + 4] = child && !child.nullable ? 1 : 0;
    this.#engine.bytes.set(written, address + SPELLING_BYTES);
    this.#engine.exports.addSpelling(keys.node.address, address);
    keys.room--;
    return address;
  }
}

const encoder = new TextEncoder();

function align(size: number): number {
  return (size + 15) & ~15;
}

function childrenOf(type: DataType): { readonly name: string; readonly field: Field }[] {
  switch (type.kind) {
    case "struct":
      return type.fields.map((field) => ({ name: field.name, field }));
    case "list":
      return [{ name: "", field: type.element }];
    case "map":
      return [
        { name: "", field: type.key },
        { name: "", field: type.value },
      ];
    default:
      return [];
  }
}

/** The two parameters of a type: bounds of integers, precision and scale of decimals, size. */
function boundsOf(type: DataType): readonly [number, number] {
  switch (type.kind) {
    case "int8":
    case "int16":
    case "int32":
    case "uint8":
    case "uint16":
    case "uint32":
      return INTEGER_RANGES[type.kind];
    case "decimal":
      return [type.precision, type.scale];
    case "fixed":
      return [0, type.size];
    default:
      return [0, 0];
  }
}
