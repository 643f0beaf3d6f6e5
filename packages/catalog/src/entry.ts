/**
 * An entry: one commit as data. Form: the header's length in bytes (4 bytes, little-endian), the header as JSON in UTF-8,
 * then the blobs that the header lists with their lengths and SHA-256, one after the other: the rows of hot batches, in
 * the order of the operations.
 *
 * JSON has no 64-bit integers, no NaN and no bytes, so statistics and partition values are tagged text: `i` and decimal
 * digits, `f` and the shortest exact number, `b0` or `b1`, `x` and hex, `s` and text.
 */

import {
  type BoundValue,
  CatalogError,
  type ColumnStatistics,
  CorruptionError,
  type DataType,
  type Field,
  type FieldBounds,
  type PartitionValue,
  parseType,
  type Reject,
  type Schema,
} from "@eider/core";
import { sha256Hex } from "@eider/core/node";
import type { DataFile, HotRows, Meta, Operation, SourceRange } from "./catalog.js";
import { JsonReader } from "./json-reader.js";
import { isSequence } from "./names.js";
import { readPosition } from "./position.js";
import { rejectPlace } from "./reject-id.js";

/** Format that is written. */
const FORMAT = 1;
/** What this reader understands. 2: views. */
const READER = 2;
/** Far deeper than any schema that a parser makes; keeps a hostile one from exhausting the stack. */
const MAX_TYPE_DEPTH = 200;

export interface Entry {
  readonly lake: string;
  /** Its number and that of the snapshot it makes: 1, 2, 3 … */
  readonly n: number;
  /** Random. Tells a commit whose answer was lost from another one at the same number. */
  readonly id: string;
  /** Id of entry n − 1; empty for the first. */
  readonly prev: string;
  /** Random per process start. */
  readonly writer: string;
  readonly host: string;
  /** Milliseconds since the epoch; never before that of n − 1. */
  readonly time: number;
  /** In force after this entry. */
  readonly floor: number;
  /** Empty where members have their own. */
  readonly meta: Meta;
  readonly operations: readonly Operation[];
  /** Only of several appends that share the entry: whose operations are whose, in their order. */
  readonly members?: readonly Member[];
}

/** One of several appends in an entry. */
export interface Member {
  /** How many of the entry's operations are its own; they follow those of the members before. */
  readonly operations: number;
  readonly meta: Meta;
}

/** What was committed together as one append or transaction each: a part of the entry, or all of it. */
export function draftsOf({ operations, meta, members }: Entry): { operations: readonly Operation[]; meta: Meta }[] {
  if (!members) return [{ operations, meta }];
  let end = 0;
  return members.map((member) => {
    const first = end;
    end += member.operations;
    return { operations: operations.slice(first, end), meta: member.meta };
  });
}

/** How many bytes follow the header. */
export function blobBytes(entry: Entry): number {
  return blobsOf(entry).reduce((sum, blob) => sum + blob.length, 0);
}

/** Writes an entry in the form above. */
export function encodeEntry(entry: Entry): Uint8Array {
  return Buffer.concat([encodeHeader(entry), ...blobsOf(entry)]);
}

/** The entry without its blobs. */
export function encodeHeader(entry: Entry): Uint8Array {
  const { operations, ...rest } = entry;
  return frame({
    format: FORMAT,
    minReader: minReader(entry),
    ...rest,
    blobs: blobsOf(entry).map((blob) => ({ bytes: blob.length, sha256: sha256Hex(blob) })),
    operations: operations.map(operationToJson),
  });
}

/** Oldest reader that understands an entry: nothing in it may ever be skipped. */
function minReader({ operations }: Entry): number {
  return operations.some(({ op }) => op === "view") ? 2 : 1;
}

/** JSON behind its length: the form of headers, and of stubs. */
export function frame(json: object): Uint8Array {
  const header = Buffer.from(JSON.stringify(json));
  const bytes = new Uint8Array(4 + header.length);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 4);
  return bytes;
}

function blobsOf({ operations }: Entry): Uint8Array[] {
  return operations.flatMap((operation) => (operation.op === "append" && operation.hot ? [operation.hot.data] : []));
}

/**
 * Reads an entry; every part of it is checked.
 * @throws CatalogError `reader_too_old` if it needs a newer reader
 * @throws CorruptionError `bad_entry`
 */
export function decodeEntry(bytes: Uint8Array): Entry {
  const fail = (reason: string): never => {
    throw new CorruptionError("bad_entry", `an entry cannot be read: ${reason}`);
  };
  if (bytes.length < 4) fail("it is cut off");
  const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
  if (bytes.length < 4 + length) fail("it is cut off");
  const header = JsonReader.parse(bytes.subarray(4, 4 + length), fail);
  const minReader = header.get("minReader").count();
  if (minReader > READER) {
    throw new CatalogError(
      "reader_too_old",
      `this lake was written by a newer version of Eider (needs reader ${minReader}, this one is ${READER}): update Eider`,
    );
  }
  const blobs = readBlobs(header.get("blobs").list(), bytes.subarray(4 + length), fail);
  const operations = header
    .get("operations")
    .list()
    .map((json) => readOperation(json, blobs));
  if (blobs.length > 0) fail("a blob belongs to nothing");
  const members = header.optional("members");
  return {
    ...readFacts(header),
    meta: readMeta(header.get("meta")),
    operations,
    ...(members && { members: readMembers(members, operations) }),
  };
}

/** What an entry and its stub have in common. */
export type EntryFacts = Omit<Entry, "meta" | "operations" | "members">;

export function readFacts(header: JsonReader): EntryFacts {
  return {
    lake: header.get("lake").text(),
    n: header.get("n").count(1),
    id: header.get("id").text(),
    prev: header.get("prev").text(),
    writer: header.get("writer").text(),
    host: header.get("host").text(),
    time: header.get("time").count(),
    floor: header.get("floor").count(),
  };
}

function readMeta(json: JsonReader): Meta {
  return Object.fromEntries(json.entries().map(([key, value]) => [key, value.text()]));
}

/** Only appends share an entry: what they do to the state before them is little, see `GroupState`. */
function readMembers(json: JsonReader, operations: readonly Operation[]): Member[] {
  const members = json.list().map((member) => ({
    operations: member.get("operations").count(1),
    meta: readMeta(member.get("meta")),
  }));
  const total = members.reduce((sum, member) => sum + member.operations, 0);
  if (members.length < 2 || total !== operations.length) json.fail("does not share out the operations");
  if (operations.some((operation) => operation.op !== "append" || operation.replays))
    json.fail("has others than appends");
  return members;
}

function readBlobs(list: readonly JsonReader[], bytes: Uint8Array, fail: (reason: string) => never): Uint8Array[] {
  let at = 0;
  const blobs = list.map((json) => {
    const length = json.get("bytes").count(1);
    const blob = bytes.subarray(at, at + length);
    if (blob.length < length) fail("it is cut off");
    if (sha256Hex(blob) !== json.get("sha256").text()) json.fail("has other bytes than were written");
    at += length;
    return blob;
  });
  if (bytes.length > at) fail("there are bytes after its blobs");
  return blobs;
}

function operationToJson(operation: Operation): unknown {
  switch (operation.op) {
    case "append": {
      const { hot, files, ...rest } = operation;
      return { ...rest, files: files.map(fileToJson), ...(hot && { hot: { bounds: hot.bounds.map(boundsToJson) } }) };
    }
    case "rearrange":
      return { ...operation, addFiles: operation.addFiles.map(fileToJson) };
    default:
      return operation;
  }
}

function boundsToJson({ fieldId, min, max }: FieldBounds): unknown {
  return { fieldId, min: valueToJson(min), max: valueToJson(max) };
}

function fileToJson(file: DataFile): unknown {
  return {
    ...file,
    partition: file.partition.map(valueToJson),
    columns: file.columns.map(({ hasNaN, min, max, minExact, maxExact, ...column }) => ({
      ...column,
      ...(hasNaN && { hasNaN }),
      ...(min !== undefined && { min: valueToJson(min) }),
      ...(max !== undefined && { max: valueToJson(max) }),
      ...(!minExact && { minExact }),
      ...(!maxExact && { maxExact }),
    })),
  };
}

/** A bound or partition value as tagged text; null stays null. */
export function valueToJson(value: BoundValue | PartitionValue): string | null {
  switch (typeof value) {
    case "bigint":
      return `i${value}`;
    case "number":
      return Object.is(value, -0) ? "f-0" : `f${value}`;
    case "boolean":
      return value ? "b1" : "b0";
    case "string":
      return `s${value}`;
    default:
      return value && `x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("hex")}`;
  }
}

function readValue(json: JsonReader): BoundValue | string {
  const text = json.text();
  const body = text.slice(1);
  switch (text[0]) {
    case "i":
      if (/^(0|-?[1-9]\d{0,38})$/.test(body)) return BigInt(body);
      break;
    case "f": {
      const value = Number(body);
      if (valueToJson(value) === text) return value;
      break;
    }
    case "b":
      if (body === "0" || body === "1") return body === "1";
      break;
    case "x":
      if (/^([0-9a-f]{2})*$/.test(body)) return new Uint8Array(Buffer.from(body, "hex"));
      break;
    case "s":
      return body;
  }
  return json.fail("is not a tagged value");
}

/** Reads one partition value, the inverse of {@link valueToJson}. */
export function readPartitionValue(json: JsonReader): PartitionValue {
  if (json.isNull()) return null;
  const value = readValue(json);
  return value instanceof Uint8Array ? json.fail("is bytes, not a partition value") : value;
}

function readBound(json: JsonReader): BoundValue {
  const value = readValue(json);
  return typeof value === "string" ? json.fail("is text, not a bound") : value;
}

/** Takes from `blobs` what belongs to the operation. */
function readOperation(json: JsonReader, blobs: Uint8Array[]): Operation {
  const op = json.get("op").text();
  const table = (): string => json.get("table").text();
  switch (op) {
    case "schema": {
      const create = json.optional("create");
      const valuesOf = json.optional("valuesOf");
      return {
        op,
        table: table(),
        version: json.get("version").count(1),
        schema: readSchema(json.get("schema")),
        lastFieldId: json.get("lastFieldId").count(),
        ...(valuesOf && { valuesOf: valuesOf.count() }),
        ...(create && {
          create: {
            name: create.get("name").text(),
            folder: create.get("folder").text(),
            partitionBy: create
              .get("partitionBy")
              .list()
              .map((item) => item.text()),
            orderBy: create
              .get("orderBy")
              .list()
              .map((item) => item.text()),
          },
        }),
      };
    }
    case "append": {
      const hot = json.optional("hot");
      const replays = json.optional("replays");
      return {
        op,
        table: table(),
        batch: json.get("batch").text(),
        ...readRange(json.optional("range")),
        hash: json.get("hash").text(),
        rows: json.get("rows").count(),
        schemaVersion: json.get("schemaVersion").count(1),
        files: json.get("files").list().map(readFile),
        ...(hot && { hot: readHot(hot, blobs.shift()) }),
        rejects: json.get("rejects").list().map(readReject),
        ...(replays && { replays: replays.list().map(readRejectId) }),
      };
    }
    case "rearrange":
      return {
        op,
        table: table(),
        removeHot: json
          .get("removeHot")
          .list()
          .map((item) => item.text()),
        removeFiles: json
          .get("removeFiles")
          .list()
          .map((item) => item.text()),
        addFiles: json.get("addFiles").list().map(readFile),
      };
    case "drop":
      return { op, table: table() };
    case "purge":
      return { op, table: table(), rejects: json.get("rejects").list().map(readRejectId) };
    case "rollback":
      return { op, table: table(), to: json.get("to").count(1) };
    case "cursor": {
      const to = json.optional("to");
      return {
        op,
        name: json.get("name").text(),
        from: position(json.get("from")),
        ...(to && { to: position(to) }),
      };
    }
    case "tag": {
      const snapshot = json.optional("snapshot");
      return { op, name: json.get("name").text(), ...(snapshot && { snapshot: snapshot.count(1) }) };
    }
    case "view": {
      const from = json.optional("from");
      const sql = json.optional("sql");
      return {
        op,
        name: json.get("name").text(),
        ...(from && { from: from.count(1) }),
        ...(sql && { sql: sql.text() }),
      };
    }
    case "expire":
      return { op, before: json.get("before").count(1), unusedSince: json.get("unusedSince").count() };
    case "floor":
      return { op, floor: json.get("floor").count() };
    default:
      return json.get("op").fail("is not an operation this version knows");
  }
}

function position(json: JsonReader): string {
  const text = json.text();
  return readPosition(text) ? text : json.fail("is not a position");
}

function readRange(json: JsonReader | undefined): { range?: SourceRange } {
  if (!json) return {};
  const digits = (end: JsonReader): string =>
    isSequence(end.text()) ? end.text() : end.fail("is not a sequence number");
  const range = { source: json.get("source").text(), first: digits(json.get("first")), last: digits(json.get("last")) };
  return { range };
}

function readHot(json: JsonReader, data: Uint8Array | undefined): HotRows {
  if (!data) return json.fail("has no blob");
  return { data, bounds: json.get("bounds").list().map(readBounds) };
}

function readBounds(json: JsonReader): FieldBounds {
  const min = readBound(json.get("min"));
  const max = readBound(json.get("max"));
  if (typeof min !== "bigint" || typeof max !== "bigint") return json.fail("has bounds that are not integers");
  return { fieldId: json.get("fieldId").count(1), min, max };
}

function readFile(json: JsonReader): DataFile {
  const footer = json.optional("footer");
  return {
    key: json.get("key").text(),
    bytes: json.get("bytes").count(),
    rows: json.get("rows").count(),
    sha256: json.get("sha256").text(),
    base: json.get("base").count(),
    schemaVersion: json.get("schemaVersion").count(1),
    partition: json.get("partition").list().map(readPartitionValue),
    columns: json.get("columns").list().map(readStatistics),
    ...(footer && { footer: { bytes: footer.get("bytes").count(), sha256: footer.get("sha256").text() } }),
  };
}

function readStatistics(json: JsonReader): ColumnStatistics {
  const min = json.optional("min");
  const max = json.optional("max");
  return {
    fieldId: json.get("fieldId").count(1),
    valueCount: json.get("valueCount").count(),
    nullCount: json.get("nullCount").count(),
    hasNaN: json.optional("hasNaN")?.flag() ?? false,
    ...(min && { min: readBound(min) }),
    ...(max && { max: readBound(max) }),
    minExact: json.optional("minExact")?.flag() ?? true,
    maxExact: json.optional("maxExact")?.flag() ?? true,
    storedBytes: json.get("storedBytes").count(),
  };
}

function readReject(json: JsonReader): Reject {
  return {
    line: json.get("line").count(),
    code: json.get("code").text(),
    reason: json.get("reason").text(),
    raw: json.get("raw").text(),
  };
}

function readRejectId(json: JsonReader): string {
  const id = json.text();
  return rejectPlace(id) ? id : json.fail("is not the id of a reject");
}

/** Reads a schema from its JSON form, which is the plain `Schema` object. */
export function readSchema(json: JsonReader): Schema {
  return {
    fields: json
      .get("fields")
      .list()
      .map((field) => readField(field, 0)),
  };
}

function readField(json: JsonReader, depth: number): Field {
  return {
    id: json.get("id").count(),
    name: json.get("name").text(),
    type: readType(json.get("type"), depth + 1),
    nullable: json.get("nullable").flag(),
  };
}

function readType(json: JsonReader, depth: number): DataType {
  if (depth > MAX_TYPE_DEPTH) json.fail("is nested too deep");
  const kind = json.get("kind").text();
  switch (kind) {
    case "decimal":
      return { kind, precision: json.get("precision").count(1, 38), scale: json.get("scale").count(0, 38) };
    case "fixed":
      return { kind, size: json.get("size").count(1) };
    case "list":
      return { kind, element: readField(json.get("element"), depth) };
    case "map":
      return { kind, key: readField(json.get("key"), depth), value: readField(json.get("value"), depth) };
    case "struct":
      return {
        kind,
        fields: json
          .get("fields")
          .list()
          .map((field) => readField(field, depth)),
      };
  }
  try {
    const type = parseType(kind);
    if (type.kind === kind) return type;
  } catch {
    // not a type name at all
  }
  return json.get("kind").fail("is not a type this version knows");
}
