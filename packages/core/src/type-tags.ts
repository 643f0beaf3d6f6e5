/**
 * Type tags: how stream configurations in TOML write column types, after Arrow's names. A tag is matched whole, blanks
 * only after a comma.
 *
 * | tag | type |
 * |---|---|
 * | `string`, `large_string` | string |
 * | `bytes`, `large_bytes` | binary |
 * | `fixed_bytes[n]` | fixed(n) |
 * | `bool`, `int8` … `int64`, `uint8` … `uint64`, `float32`, `float64` | the same |
 * | `float16` | float32, which holds all its values |
 * | `decimal[p,s]` | decimal(p,s) |
 * | `date32`, `date64` | date |
 * | `time[unit]` | time |
 * | `timestamp[unit]` | timestamp |
 * | `timestamp[unit, tz]` | timestamptz: the instant; the zone is only how it would be shown |
 *
 * Units are `s`, `ms`, `us`, `ns` or Arrow's words for them (`second`, `millisecond` …). All are kept in microseconds; a
 * value that needs finer ones is refused, not rounded.
 */

import { SchemaError } from "./errors.js";
import { type DataType, formatType, parseType } from "./schema.js";

const PLAIN: ReadonlyMap<string, string> = new Map([
  ["string", "string"],
  ["large_string", "string"],
  ["bytes", "binary"],
  ["large_bytes", "binary"],
  ["bool", "bool"],
  ["int8", "int8"],
  ["int16", "int16"],
  ["int32", "int32"],
  ["int64", "int64"],
  ["uint8", "uint8"],
  ["uint16", "uint16"],
  ["uint32", "uint32"],
  ["uint64", "uint64"],
  ["float16", "float32"],
  ["float32", "float32"],
  ["float64", "float64"],
  ["date32", "date"],
  ["date64", "date"],
]);

const UNIT = "(?:s|ms|us|ns|second|millisecond|microsecond|nanosecond)";
/** A name of the IANA database, or an offset (Arrow columnar format, "Timestamp"). */
const ZONE = "(?:[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*|[+-]\\d{2}:\\d{2})";

const FIXED = /^fixed_bytes\[(\d{1,9})\]$/;
const DECIMAL = /^decimal\[(\d{1,2}), ?(\d{1,2})\]$/;
const TIME = new RegExp(`^time\\[${UNIT}\\]$`);
const TIMESTAMP = new RegExp(`^timestamp\\[${UNIT}(, ?${ZONE})?\\]$`);

/**
 * The type that a tag names.
 * @throws SchemaError `bad_type`
 */
export function parseTypeTag(tag: string): DataType {
  const plain = PLAIN.get(tag);
  if (plain !== undefined) return parseType(plain);
  const fixed = FIXED.exec(tag);
  if (fixed) return parseType(`fixed(${fixed[1]})`);
  const decimal = DECIMAL.exec(tag);
  if (decimal) return parseType(`decimal(${decimal[1]},${decimal[2]})`);
  if (TIME.test(tag)) return { kind: "time" };
  const timestamp = TIMESTAMP.exec(tag);
  if (timestamp) return { kind: timestamp[1] === undefined ? "timestamp" : "timestamptz" };
  throw new SchemaError(
    "bad_type",
    `${JSON.stringify(tag)} is no type tag; known are ${[...PLAIN.keys()].join(" ")} fixed_bytes[n] decimal[p,s] time[unit] timestamp[unit] timestamp[unit, tz]`,
    { subject: tag },
  );
}

/**
 * The tag of a type. {@link parseTypeTag} reads it back as the same type.
 * @throws SchemaError `unsupported_type` for uuid, json, list, map, struct and unknown, which have no tag
 */
export function formatTypeTag(type: DataType): string {
  switch (type.kind) {
    case "binary":
      return "bytes";
    case "fixed":
      return `fixed_bytes[${type.size}]`;
    case "decimal":
      return `decimal[${type.precision},${type.scale}]`;
    case "date":
      return "date32";
    case "time":
      return "time[us]";
    case "timestamp":
      return "timestamp[us]";
    case "timestamptz":
      return "timestamp[us, UTC]";
    default:
      if (PLAIN.get(type.kind) === type.kind) return type.kind;
      throw new SchemaError("unsupported_type", `the type ${formatType(type)} has no type tag: use another type`, {
        subject: formatType(type),
      });
  }
}
