/** The schema of a Parquet file of any writer as ours. */

import { SchemaError } from "./errors.js";
import { ConvertedType, LogicalType, PhysicalType, Repetition, TimeUnit } from "./parquet-format.js";
import { malformed, type ThriftStruct } from "./parquet-thrift.js";
import type { DataType, Field, Schema } from "./schema.js";

/** A leaf column as it is stored. */
export interface StoredLeaf {
  readonly field: Field;
  readonly physical: number;
  readonly required: boolean;
  /** What a stored bound is multiplied by to count microseconds; 0 where bounds cannot be used. */
  readonly factor: bigint;
}

/** Nothing sane nests deeper; the stack holds this much. */
const MAX_DEPTH = 128;

/**
 * Reads `FileMetaData.schema`: the fields, and the leaves in the order of column chunks.
 * @throws InvalidInputError `bad_parquet`
 * @throws SchemaError `unsupported_type`, naming the column
 */
export function readSchema(elements: readonly ThriftStruct[]): { schema: Schema; leaves: readonly StoredLeaf[] } {
  return new SchemaReader(elements).read();
}

class SchemaReader {
  readonly #elements: readonly ThriftStruct[];
  readonly #leaves: StoredLeaf[] = [];
  #at = 0;

  constructor(elements: readonly ThriftStruct[]) {
    this.#elements = elements;
  }

  read(): { schema: Schema; leaves: readonly StoredLeaf[] } {
    const root = this.#next();
    const fields: Field[] = [];
    for (let i = root.int(5) ?? 0; i > 0; i--) fields.push(this.#field(this.#next(), [], true));
    if (this.#at !== this.#elements.length) throw malformed("the schema has nodes that nothing holds");
    return { schema: { fields }, leaves: this.#leaves };
  }

  #next(): ThriftStruct {
    const element = this.#elements[this.#at++];
    if (element === undefined) throw malformed("the schema ends too early");
    return element;
  }

  #peek(): ThriftStruct {
    const element = this.#next();
    this.#at--;
    return element;
  }

  #field(element: ThriftStruct, above: readonly string[], required: boolean): Field {
    const path = [...above, element.string(4) ?? ""];
    if (path.length > MAX_DEPTH) throw malformed("the schema nests too deeply");
    const repetition = element.int(3);
    if (repetition === Repetition.repeated) {
      // LogicalTypes.md: a repeated field that no LIST or MAP group holds is a required list of required elements.
      const item = this.#node(element, path, required);
      return {
        ...item,
        nullable: false,
        type: { kind: "list", element: { ...item, name: "element", nullable: false } },
      };
    }
    const field = this.#node(element, path, required && repetition === Repetition.required);
    return { ...field, nullable: repetition === Repetition.optional };
  }

  /** The field itself, whatever its repetition. */
  #node(element: ThriftStruct, path: readonly string[], required: boolean): Field {
    const base = { id: element.int(9) ?? 0, name: path.at(-1)!, nullable: false };
    const physical = element.int(1);
    if (physical !== undefined) {
      const { type, factor } = leafType(element, physical, path);
      const field = { ...base, type };
      this.#leaves.push({ field, physical, required, factor });
      return field;
    }
    const children = element.int(5) ?? 0;
    const logical = element.struct(10)?.arm();
    const converted = element.int(6);
    if (logical === LogicalType.list || converted === ConvertedType.list) {
      return { ...base, type: this.#list(path, children) };
    }
    if (logical === LogicalType.map || converted === ConvertedType.map || converted === ConvertedType.mapKeyValue) {
      return { ...base, type: this.#map(path, children) };
    }
    if (children < 1) throw malformed(`the group ${path.join(".")} is empty`);
    const fields: Field[] = [];
    for (let i = 0; i < children; i++) fields.push(this.#field(this.#next(), path, required));
    return { ...base, type: { kind: "struct", fields } };
  }

  #list(path: readonly string[], children: number): DataType {
    const repeated = this.#next();
    if (children !== 1 || repeated.int(3) !== Repetition.repeated) throw malformed(`${path.join(".")} is no list`);
    const name = repeated.string(4) ?? "";
    // LogicalTypes.md, backward compatibility: when the repeated node is the element itself.
    const isElement =
      repeated.int(1) !== undefined ||
      (repeated.int(5) ?? 0) > 1 ||
      name === "array" ||
      name === `${path.at(-1)}_tuple` ||
      this.#peek().int(3) === Repetition.repeated;
    const inner = [...path, name];
    const element = isElement ? this.#node(repeated, inner, false) : this.#field(this.#next(), inner, false);
    return { kind: "list", element: { ...element, name: "element" } };
  }

  #map(path: readonly string[], children: number): DataType {
    const repeated = this.#next();
    if (children !== 1 || repeated.int(3) !== Repetition.repeated || repeated.int(5) !== 2) {
      throw malformed(`${path.join(".")} is no map`);
    }
    const inner = [...path, repeated.string(4) ?? ""];
    const key = this.#field(this.#next(), inner, false);
    const value = this.#field(this.#next(), inner, false);
    // Some writers make keys optional; a map's key never is.
    return { kind: "map", key: { ...key, name: "key", nullable: false }, value: { ...value, name: "value" } };
  }
}

function leafType(
  element: ThriftStruct,
  physical: number,
  path: readonly string[],
): { type: DataType; factor: bigint } {
  const union = element.struct(10);
  const logical = union?.arm();
  const arm = logical === undefined ? undefined : union?.struct(logical);
  const converted = element.int(6);
  const simple = (type: DataType): { type: DataType; factor: bigint } => ({ type, factor: 1n });
  if (logical === LogicalType.decimal || converted === ConvertedType.decimal) {
    const scale = arm?.int(1) ?? element.int(7) ?? 0;
    const precision = arm?.int(2) ?? element.int(8) ?? 0;
    if (precision < 1 || precision > 38 || scale < 0 || scale > precision) {
      throw unsupported(path, `decimal(${precision},${scale})`);
    }
    return simple({ kind: "decimal", precision, scale });
  }
  switch (physical) {
    case PhysicalType.boolean:
      return simple({ kind: "bool" });
    case PhysicalType.float:
      return simple({ kind: "float32" });
    case PhysicalType.double:
      return simple({ kind: "float64" });
    case PhysicalType.int96:
      return { type: { kind: "timestamp" }, factor: 0n };
    case PhysicalType.byteArray:
      if (logical === LogicalType.json || converted === ConvertedType.json) return simple({ kind: "json" });
      if (logical === LogicalType.string || logical === LogicalType.enum) return simple({ kind: "string" });
      if (converted === ConvertedType.utf8 || converted === ConvertedType.enum) return simple({ kind: "string" });
      return simple({ kind: "binary" });
    case PhysicalType.fixedLenByteArray: {
      const size = element.int(2) ?? 0;
      if (size < 1) throw malformed(`${path.join(".")} has no length`);
      if (logical === LogicalType.uuid && size === 16) return simple({ kind: "uuid" });
      if (logical === FLOAT16 && size === 2) return { type: { kind: "float32" }, factor: 0n };
      if (converted === INTERVAL) throw unsupported(path, "interval");
      return simple({ kind: "fixed", size });
    }
    case PhysicalType.int32:
    case PhysicalType.int64:
      return integerType(physical === PhysicalType.int32 ? 32 : 64, logical, arm, converted);
    default:
      throw malformed(`${path.join(".")} has the unknown type ${physical}`);
  }
}

/** `LogicalType.FLOAT16` and `ConvertedType.INTERVAL`: never written here. */
const FLOAT16 = 15;
const INTERVAL = 21;

function integerType(
  width: 32 | 64,
  logical: number | undefined,
  arm: ThriftStruct | undefined,
  converted: number | undefined,
): { type: DataType; factor: bigint } {
  const time = (
    kind: "time" | "timestamp" | "timestamptz",
    unit: number | undefined,
  ): { type: DataType; factor: bigint } => ({
    type: { kind },
    factor: unit === TimeUnit.micros ? 1n : unit === TimeUnit.millis ? 1000n : 0n,
  });
  const simple = (type: DataType): { type: DataType; factor: bigint } => ({ type, factor: 1n });
  switch (logical) {
    case LogicalType.date:
      return simple({ kind: "date" });
    case LogicalType.time:
      return time("time", arm?.struct(2)?.arm());
    case LogicalType.timestamp:
      return time(arm?.bool(1) === true ? "timestamptz" : "timestamp", arm?.struct(2)?.arm());
    case LogicalType.unknown:
      return simple({ kind: "unknown" });
    case LogicalType.integer:
      return simple(sized(arm?.int(1) ?? width, arm?.bool(2) !== false));
    default:
      break;
  }
  switch (converted) {
    case ConvertedType.date:
      return simple({ kind: "date" });
    case ConvertedType.timeMillis:
      return time("time", TimeUnit.millis);
    case ConvertedType.timeMicros:
      return time("time", TimeUnit.micros);
    // LogicalTypes.md: without a logical type, these are instants.
    case ConvertedType.timestampMillis:
      return time("timestamptz", TimeUnit.millis);
    case ConvertedType.timestampMicros:
      return time("timestamptz", TimeUnit.micros);
    default:
      break;
  }
  if (converted !== undefined && converted >= ConvertedType.uint8 && converted <= ConvertedType.int64) {
    const unsigned = converted < ConvertedType.int8;
    return simple(sized(8 << (converted - (unsigned ? ConvertedType.uint8 : ConvertedType.int8)), !unsigned));
  }
  return simple(sized(width, true));
}

function sized(bits: number, signed: boolean): DataType {
  const width = bits <= 8 ? 8 : bits <= 16 ? 16 : bits <= 32 ? 32 : 64;
  return { kind: `${signed ? "int" : "uint"}${width}` };
}

function unsupported(path: readonly string[], what: string): SchemaError {
  return new SchemaError(
    "unsupported_type",
    `the column ${path.join(".")} is ${what}, which cannot be taken; cast it first`,
    {
      subject: path.join("."),
    },
  );
}
