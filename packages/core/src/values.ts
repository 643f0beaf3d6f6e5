/** Columns as JavaScript values, exactly. */

import { base64Text, uuidText } from "./binary-text.js";
import { getBit, isValid } from "./bitmap.js";
import { DAY_MICROS, formatDate, formatTime } from "./calendar.js";
import type { Column, RecordBatch } from "./columns.js";
import { bigFromHalves, divideHalves, formatDecimal, fromHalves, isSafe, readInt128 } from "./integers.js";
import { bytesOf, wordsOf } from "./layout.js";
import type { Field } from "./schema.js";

/**
 * How values come out. Null is null in both, and a null field is a key with null, never a missing key.
 *
 * | type | `exact` | `json`: survives `JSON.stringify` |
 * |---|---|---|
 * | int8 … int32, uint8 … uint32 | number | number |
 * | int64, uint64 | bigint | number if safe, else string |
 * | float32, float64 | number | number; `"NaN"`, `"Infinity"`, `"-Infinity"` |
 * | decimal | string, all digits of the scale | the same |
 * | date | `YYYY-MM-DD` | the same |
 * | time | `HH:MM:SS.ffffff` | the same |
 * | timestamp | `YYYY-MM-DDTHH:MM:SS.ffffff` | the same |
 * | timestamptz | the same with `Z` | the same |
 * | uuid, string, json | string (json as its text) | the same |
 * | binary, fixed | Uint8Array, a copy | base64 |
 * | list | array | array |
 * | map | Map | object if the keys are text, else array of pairs |
 * | struct | object | object |
 *
 * Years outside 0–9999 have a sign and six digits, as in ISO 8601.
 */
export type ValueMode = "exact" | "json";

/** Reads the value of a row; 0-based. */
export type ValueReader = (row: number) => unknown;

/** One value of a column. For many values of one column, {@link valueReader} is faster. */
export function columnValue(column: Column, row: number, mode: ValueMode): unknown {
  return valueReader(column, mode)(row);
}

/** A reader for one column: what depends only on the column is done once. */
export function valueReader(column: Column, mode: ValueMode): ValueReader {
  const read = presentReader(column, mode);
  const { validity } = column;
  return validity === undefined ? read : (row) => (isValid(validity, row) ? read(row) : null);
}

/** The rows of a batch as objects, in the order of the schema's fields. */
export function batchRows(batch: RecordBatch, mode: ValueMode): Record<string, unknown>[] {
  const read = structReader(batch.schema.fields, batch.columns, mode);
  return Array.from({ length: batch.length }, (_, row) => read(row));
}

function presentReader(column: Column, mode: ValueMode): ValueReader {
  const { type } = column;
  const json = mode === "json";
  switch (type.kind) {
    case "bool": {
      const bits = bytesOf(column.values!);
      return (row) => getBit(bits, row);
    }
    case "int8":
    case "int16":
    case "int32":
    case "uint8":
    case "uint16":
    case "uint32": {
      const values = column.values as Int32Array;
      return (row) => values[row];
    }
    case "int64":
    case "uint64": {
      const values = column.values as BigInt64Array;
      return json ? safeIntegerReader(column) : (row) => values[row];
    }
    case "float32":
    case "float64": {
      const values = column.values as Float64Array;
      if (!json) return (row) => values[row];
      return (row) => (Number.isFinite(values[row]!) ? values[row] : String(values[row]));
    }
    case "decimal": {
      const bytes = bytesOf(column.values!);
      return (row) => formatDecimal(readInt128(bytes, row * 16), type.scale);
    }
    case "date": {
      const values = column.values as Int32Array;
      return (row) => formatDate(values[row]!);
    }
    case "time": {
      const words = wordsOf(column.values!);
      return (row) => formatTime(fromHalves(words[2 * row]!, words[2 * row + 1]! | 0));
    }
    case "timestamp":
      return timestampReader(column, "");
    case "timestamptz":
      return timestampReader(column, "Z");
    case "uuid": {
      const bytes = bytesOf(column.values!);
      return (row) => uuidText(bytes, row * 16);
    }
    case "fixed": {
      const bytes = bytesOf(column.values!);
      const { size } = type;
      return binaryReader(json, (row) => bytes.subarray(row * size, (row + 1) * size));
    }
    case "binary": {
      const bytes = bytesOf(column.values!);
      const offsets = column.offsets!;
      return binaryReader(json, (row) => bytes.subarray(offsets[row]!, offsets[row + 1]!));
    }
    case "string":
    case "json":
      return textReader(column);
    case "list": {
      const offsets = column.offsets!;
      const element = valueReader(column.children[0]!, mode);
      return (row) => {
        const start = offsets[row]!;
        return Array.from({ length: offsets[row + 1]! - start }, (_, i) => element(start + i));
      };
    }
    case "map":
      return mapReader(column, mode);
    case "struct":
      return structReader(type.fields, column.children, mode);
    case "unknown":
      return () => null;
  }
}

function safeIntegerReader(column: Column): ValueReader {
  const words = wordsOf(column.values!);
  const values = column.values as BigInt64Array | BigUint64Array;
  const signed = column.type.kind === "int64";
  return (row) => {
    const high = signed ? words[2 * row + 1]! | 0 : words[2 * row + 1]!;
    // −2^53 lies within these halves but is not a safe integer.
    const value = fromHalves(words[2 * row]!, high);
    return isSafe(high) && Number.isSafeInteger(value) ? value : String(values[row]);
  };
}

/** Days whose text a timestamp reader keeps. */
const KEPT_DAYS = 1000;

/** Microseconds since the epoch. */
function timestampReader(column: Column, suffix: string): ValueReader {
  const words = wordsOf(column.values!);
  const dates = new Map<number, string>();
  return (row) => {
    const low = words[2 * row]!;
    const high = words[2 * row + 1]! | 0;
    const day = divideHalves(low, high, DAY_MICROS);
    const time = isSafe(high)
      ? fromHalves(low, high) - day * DAY_MICROS
      : Number(bigFromHalves(low, high) - BigInt(day) * BigInt(DAY_MICROS));
    let date = dates.get(day);
    if (date === undefined) {
      date = formatDate(day);
      if (dates.size < KEPT_DAYS) dates.set(day, date);
    }
    return `${date}T${formatTime(time)}${suffix}`;
  };
}

function binaryReader(json: boolean, at: (row: number) => Uint8Array): ValueReader {
  return json ? (row) => base64Text(at(row)) : (row) => at(row).slice();
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** Rows whose text is decoded in one call. Small, because a value keeps the text of its whole block alive. */
const BLOCK_ROWS = 128;

/**
 * Text is decoded by blocks of rows: one call costs more than the bytes of a short value. Where a block is ASCII, its
 * text is cut by the offsets.
 */
function textReader(column: Column): ValueReader {
  const bytes = bytesOf(column.values!);
  const offsets = column.offsets!;
  let block = -1;
  let blockStart = 0;
  let text = "";
  let isAscii = false;
  return (row) => {
    const start = offsets[row]!;
    const end = offsets[row + 1]!;
    const wanted = Math.floor(row / BLOCK_ROWS);
    if (wanted !== block) {
      block = wanted;
      blockStart = offsets[block * BLOCK_ROWS]!;
      const blockEnd = offsets[Math.min((block + 1) * BLOCK_ROWS, column.length)]!;
      text = DECODER.decode(bytes.subarray(blockStart, blockEnd));
      // UTF-8 has more bytes than UTF-16 has units exactly when something is not ASCII.
      isAscii = text.length === blockEnd - blockStart;
    }
    return isAscii ? text.slice(start - blockStart, end - blockStart) : DECODER.decode(bytes.subarray(start, end));
  };
}

function mapReader(column: Column, mode: ValueMode): ValueReader {
  const offsets = column.offsets!;
  const [keys, values] = column.children;
  const key = valueReader(keys!, mode);
  const value = valueReader(values!, mode);
  if (mode === "exact") {
    return (row) => {
      const out = new Map<unknown, unknown>();
      for (let i = offsets[row]!; i < offsets[row + 1]!; i++) out.set(key(i), value(i));
      return out;
    };
  }
  const textKeys = keys!.type.kind === "string" || keys!.type.kind === "json";
  return (row) => {
    const start = offsets[row]!;
    const length = offsets[row + 1]! - start;
    if (!textKeys) return Array.from({ length }, (_, i) => [key(start + i), value(start + i)]);
    const out: Record<string, unknown> = {};
    for (let i = start; i < start + length; i++) setOwn(out, key(i) as string, value(i));
    return out;
  };
}

function structReader(
  fields: readonly Field[],
  columns: readonly Column[],
  mode: ValueMode,
): (row: number) => Record<string, unknown> {
  const names = fields.map((field) => field.name);
  const readers = columns.map((column) => valueReader(column, mode));
  const plain = !names.includes("__proto__");
  return (row) => {
    const out: Record<string, unknown> = {};
    if (plain) for (let i = 0; i < readers.length; i++) out[names[i]!] = readers[i]!(row);
    else for (let i = 0; i < readers.length; i++) setOwn(out, names[i]!, readers[i]!(row));
    return out;
  };
}

/** Sets a property as data, whatever its name: `out["__proto__"] = …` would set the prototype. */
function setOwn(out: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(out, name, { value, enumerable: true, configurable: true, writable: true });
  } else {
    out[name] = value;
  }
}
