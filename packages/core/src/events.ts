/** Pushed events to Parquet in the profile that event collections share: ten columns of text, whatever the events hold. */

import { BytesBuilder } from "./builders.js";
import { canonicalJson } from "./canonical.js";
import type { RecordBatch } from "./columns.js";
import { InvalidInputError, type RowProblem } from "./errors.js";
import { encodeParquet } from "./parquet-encoder.js";
import { assignFieldIds, type Schema, toSchema } from "./schema.js";
import { encodeUtf8 } from "./utf8.js";

/** In the order of the file. */
const COLUMNS = [
  "event_type",
  "event",
  "distinct_id",
  "anonymous_id",
  "ts",
  "message_id",
  "properties",
  "context",
  "dt",
  "received_at",
] as const;
const KNOWN: ReadonlySet<string> = new Set(COLUMNS);

const TEXTS = Object.fromEntries(COLUMNS.map((name) => [`${name}!`, "string"]));
const DROP_SCHEMA: Schema = assignFieldIds(toSchema(TEXTS));
const KEEP_SCHEMA: Schema = assignFieldIds(toSchema({ ...TEXTS, extra: "json" }));

const ROW_GROUP_ROWS = 100_000;
/** In Unicode mode this matches only surrogates without their pair. */
const LONE_SURROGATE = /\p{Surrogate}/u;
/** Problems that an error names. */
const MAX_NAMED = 20;

export interface EventsOptions {
  /** The server's time: `received_at` of every event, whatever its sender says. */
  readonly receivedAt: Date;
  /**
   * What becomes of properties at an event's top level that have no column. `drop` (default): they are counted and left
   * out. `keep`: they are counted, and a nullable eleventh column `extra` holds them as one canonical JSON object.
   */
  readonly unknown?: "drop" | "keep";
}

export interface EncodedEvents {
  /** The Parquet file. The same events, options and version of Eider give the same bytes. */
  readonly bytes: Uint8Array;
  readonly rows: number;
  /** How many events had each property that has no column. */
  readonly unknownProperties: ReadonlyMap<string, number>;
}

/**
 * Encodes events as one uncompressed Parquet file of exactly these required UTF-8 columns, in this order: `event_type,
 * event, distinct_id, anonymous_id, ts, message_id, properties, context, dt, received_at`. A missing or null value is the
 * empty text, text is verbatim, anything else is canonical JSON (see `canonicalJson`). No events give a file without rows.
 * @throws InvalidInputError `bad_events`, with the events at fault (counted from 1): one that is not an object, text with
 *   half of a surrogate pair, values nested too deeply. Nothing is encoded then.
 */
export function encodeEvents(events: readonly unknown[], options: EventsOptions): EncodedEvents {
  const schema = options.unknown === "keep" ? KEEP_SCHEMA : DROP_SCHEMA;
  const receivedAt = options.receivedAt.toISOString();
  const columns = schema.fields.map(({ type, nullable }) => new BytesBuilder(type, nullable));
  const unknownProperties = new Map<string, number>();
  const problems: RowProblem[] = [];
  const batches: RecordBatch[] = [];
  let length = 0;
  for (let i = 0; i < events.length; i++) {
    const problem = appendEvent(columns, events[i], receivedAt, unknownProperties);
    if (problem === undefined) length++;
    else problems.push({ line: i + 1, ...problem });
    if (length === ROW_GROUP_ROWS || i === events.length - 1) {
      batches.push({ schema, length, columns: columns.map((column) => column.finish()) });
      length = 0;
    }
  }
  const [first] = problems;
  if (first !== undefined) {
    throw new InvalidInputError(
      "bad_events",
      `${problems.length} of ${events.length} events cannot be taken; the first is event ${first.line}: ${first.reason}`,
      { rows: problems.slice(0, MAX_NAMED) },
    );
  }
  const { bytes, rows } = encodeParquet(schema, batches, { compression: "uncompressed" });
  return { bytes, rows, unknownProperties };
}

type Problem = Omit<RowProblem, "line">;

/** Gives each column a value, or none of them and the reason. */
function appendEvent(
  columns: readonly BytesBuilder[],
  event: unknown,
  receivedAt: string,
  unknown: Map<string, number>,
): Problem | undefined {
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    return { code: "not_an_object", reason: "it is not an object" };
  }
  const properties = event as Readonly<Record<string, unknown>>;
  const others = Object.entries(properties).filter(([name]) => !KNOWN.has(name));
  let texts: string[];
  try {
    texts = COLUMNS.map((name) => (name === "received_at" ? receivedAt : cell(properties, name)));
    // Not by assignment: `__proto__` is a name like any other.
    if (columns.length > COLUMNS.length && others.length > 0) texts.push(canonicalJson(Object.fromEntries(others)));
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return { code: error.code, reason: error.message };
  }
  const bad = texts.findIndex((text) => LONE_SURROGATE.test(text));
  if (bad >= 0) {
    const reason = `its ${COLUMNS[bad]} holds half of a surrogate pair, which UTF-8 cannot express`;
    return { code: "bad_text", reason };
  }
  columns.forEach((column, i) => {
    const text = texts[i];
    if (text === undefined) column.appendNull();
    else {
      const at = column.open(3 * text.length);
      column.close(encodeUtf8(text, column.data, at));
    }
  });
  for (const [name] of others) unknown.set(name, (unknown.get(name) ?? 0) + 1);
  return undefined;
}

function cell(properties: Readonly<Record<string, unknown>>, name: string): string {
  const value = Object.hasOwn(properties, name) ? properties[name] : undefined;
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : canonicalJson(value);
}
