/**
 * Folder names for tables and partitions: safe on every file system and store, and readable where they can be.
 *
 * Bytes of the UTF-8 text outside `A–Z a–z 0–9 _ -` and inner dots become `%XX`. That is one to one, so distinct
 * values have distinct names. Where a file system ignores case, `A` and `a` share a folder; that is harmless, as is
 * any other shared folder, because file names are unique by themselves and no reader takes a value from a path.
 */

import { DAY_MICROS, formatDate, formatHour, formatMonth, formatTime, formatYear } from "./calendar.js";
import type { PartitionValue } from "./columns.js";
import { floorDivide, formatDecimal } from "./integers.js";
import { murmur3 } from "./murmur3.js";
import type { DataType } from "./schema.js";
import type { PartitionSpec } from "./transforms.js";

/** Hive's name for the null partition. */
const NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__";
/** The empty text where it stands alone: a path has no empty names. */
const EMPTY_VALUE = "__EMPTY__";

/** Bytes of a folder name; file systems allow 255, and a suffix may follow. */
const MAX_COMPONENT_BYTES = 200;
/** Bytes that all partition folders of a path share: a whole key may have 1,024. */
const MAX_PATH_BYTES = 640;
/** Bytes of `~` and 32 hex digits. */
const HASH_BYTES = 33;

/** Encoded names that Windows keeps for devices, also with an extension. */
const RESERVED = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/i;

/**
 * The path of a partition below its table: `<col>[_<transform>]=<value>/…`, `""` for no specs. Dates and times are
 * readable: `ts_day=2031-02-03`, `ts_month=2031-02`, `ts_year=2031`, `ts_hour=2031-02-03-04`; buckets are
 * `id_bucket_16=5`. Names that would be too long end in `~` and a hash of the whole.
 */
export function partitionPath(specs: readonly PartitionSpec[], values: readonly PartitionValue[]): string {
  const limit = componentLimit(specs.length);
  const components = specs.map((spec, i) => `${encodeName(specName(spec))}=${encodeValue(spec, values[i]!)}`);
  return components.map((component) => shorten(unreserved(component), limit)).join("/");
}

/**
 * One value of a tuple of `count`, for paths of other forms: letters, digits and `_ - . % ~`, never empty. Different
 * values give different text. As a name by itself it still has to go through {@link pathName}.
 */
export function partitionValueText(spec: PartitionSpec, value: PartitionValue, count: number): string {
  const text = encodeValue(spec, value);
  if (text === EMPTY_VALUE) return encodeFirst(text);
  return text === "" ? EMPTY_VALUE : shorten(text, componentLimit(count));
}

/** A name between two slashes, as every file system takes it. Different names stay different. */
export function pathName(name: string): string {
  return unreserved(name);
}

/** Any text as {@link partitionValueText} writes text. */
export function pathText(text: string): string {
  return text === "" ? EMPTY_VALUE : shorten(encodeName(text), MAX_COMPONENT_BYTES);
}

function componentLimit(count: number): number {
  return Math.min(MAX_COMPONENT_BYTES, Math.max(HASH_BYTES + 8, Math.floor(MAX_PATH_BYTES / count)));
}

function specName({ field, transform }: PartitionSpec): string {
  switch (transform.kind) {
    case "identity":
      return field.name;
    case "bucket":
      return `${field.name}_bucket_${transform.buckets}`;
    case "truncate":
      return `${field.name}_truncate_${transform.width}`;
    default:
      return `${field.name}_${transform.kind}`;
  }
}

function encodeValue(spec: PartitionSpec, value: PartitionValue): string {
  if (value === null) return NULL_PARTITION;
  const text = partitionText(spec, value);
  // The text of the null marker is not null.
  return text === NULL_PARTITION ? `%5F${NULL_PARTITION.slice(1)}` : encodeName(text);
}

/** A partition value as people read it. */
function partitionText({ field, transform }: PartitionSpec, value: Exclude<PartitionValue, null>): string {
  if (typeof value !== "bigint") return String(value);
  switch (transform.kind) {
    case "year":
      return formatYear(1970 + Number(value));
    case "month":
      return formatMonth(Number(value));
    case "day":
      return formatDate(Number(value));
    case "hour":
      return formatHour(Number(value));
    case "bucket":
      return String(value);
    default:
      return integerText(field.type, value);
  }
}

function integerText(type: DataType, value: bigint): string {
  switch (type.kind) {
    case "date":
      return formatDate(Number(value));
    case "time":
      return formatTime(Number(value));
    case "timestamp":
    case "timestamptz": {
      const days = floorDivide(value, BigInt(DAY_MICROS));
      const time = formatTime(Number(value - days * BigInt(DAY_MICROS)));
      return `${formatDate(Number(days))}T${time}${type.kind === "timestamptz" ? "Z" : ""}`;
    }
    case "decimal":
      return formatDecimal(value, type.scale);
    default:
      return String(value);
  }
}

/**
 * The folder of a table: its name, encoded, and, where that folder was used before, `~` with a suffix of the table's own
 * (`~` is in no name). Never a reserved or hidden name, nor one that the lake uses itself: a leading `_` or `.` is encoded.
 */
export function tableFolder(name: string, suffix?: string): string {
  const encoded = unreserved(encodeName(name));
  const folder = encoded.startsWith("_") ? encodeFirst(encoded) : encoded;
  const short = shorten(folder, MAX_COMPONENT_BYTES);
  return suffix === undefined ? short : `${short}~${encodeName(suffix)}`;
}

function unreserved(name: string): string {
  return RESERVED.test(name) ? encodeFirst(name) : name;
}

function encodeFirst(name: string): string {
  return encodeByte(name.charCodeAt(0)) + name.slice(1);
}

const ENCODER = new TextEncoder();

/** Percent-encodes all but letters, digits, `_`, `-`, and dots that neither begin nor end the name. */
function encodeName(text: string): string {
  if (/^[A-Za-z0-9_-]*$/.test(text)) return text;
  const bytes = ENCODER.encode(text);
  let out = "";
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    const plain = /[A-Za-z0-9_-]/.test(String.fromCharCode(byte));
    const innerDot = byte === 0x2e && i > 0 && i < bytes.length - 1;
    out += plain || innerDot ? String.fromCharCode(byte) : encodeByte(byte);
  }
  return out;
}

function encodeByte(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

/** Cuts an encoded name and puts a hash of all of it behind `~`, which no encoded name holds. */
function shorten(name: string, limit: number): string {
  if (name.length <= limit) return name;
  // Not within a %XX.
  const kept = name.slice(0, limit - HASH_BYTES).replace(/%.?$/, "");
  const bytes = ENCODER.encode(name);
  const hash = [0, 1, 2, 3].map((seed) => (murmur3(bytes, 0, bytes.length, seed) >>> 0).toString(16).padStart(8, "0"));
  return `${kept}~${hash.join("")}`;
}
