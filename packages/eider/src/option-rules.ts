/**
 * Options looked at by name and kind. TypeScript sees a misspelt name only in a literal; a `batchID` that came from
 * elsewhere would turn an append that happens once into one that happens again, without a word.
 */

import { type CsvOptions, InvalidInputError } from "@eider/core";
import type { QueryOptions, ScopeLimits, ScopeOptions, TableGrant } from "@eider/query";
import { MAX_INLINE_BYTES } from "./commit/batch-rows.js";
import type { FeedOptions } from "./feed.js";
import type {
  AppendOptions,
  AppendPartsOptions,
  CopyOptions,
  CursorMove,
  FoldLimits,
  LakeOptions,
  MaintainOptions,
  PurgeRejectsOptions,
  RebuildOptions,
  RejectsOptions,
  ReplayOptions,
  Retention,
  TableOptions,
  VerifyOptions,
} from "./options.js";
import type { TransactionOptions } from "./transaction.js";
import type { CreateViewOptions } from "./views.js";
import type { FileOptions, Rotation } from "./writer/layout.js";
import type { ObjectWriterOptions } from "./writer/object-writer.js";
import type { TableWriterOptions } from "./writer/table-writer.js";

interface Rule {
  /** Completes "… has to be". */
  readonly expected: string;
  accepts(value: unknown): boolean;
}

/** A rule for each option: the compiler finds one that is missing. */
type Rules<T> = { readonly [K in keyof Required<T>]: Rule };

const anything: Rule = { expected: "anything", accepts: () => true };
const text: Rule = { expected: "a text", accepts: (value) => typeof value === "string" };
const truth: Rule = { expected: "true or false", accepts: (value) => typeof value === "boolean" };
const amount: Rule = { expected: "a number from 0 on", accepts: (value) => typeof value === "number" && value >= 0 };
const callback: Rule = { expected: "a function", accepts: (value) => typeof value === "function" };
const object: Rule = { expected: "an object", accepts: isPlain };
const texts: Rule = { expected: "an array of texts", accepts: areTexts };
const signal: Rule = { expected: "an AbortSignal", accepts: (value) => isPlain(value) && "aborted" in value };

function oneOf(...words: readonly string[]): Rule {
  const quoted = words.map((word) => JSON.stringify(word));
  return {
    expected: `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`,
    accepts: (value) => typeof value === "string" && words.includes(value),
  };
}

const LAKE: Rules<LakeOptions> = {
  mode: oneOf("create", "open", "read"),
  cacheDir: text,
  cacheBytes: amount,
  wholeFileBytes: amount,
  memoryBytes: amount,
  stalenessMs: amount,
  inlineBytes: {
    expected: `a number from 0 to ${MAX_INLINE_BYTES}`,
    accepts: (value) => typeof value === "number" && value >= 0 && value <= MAX_INLINE_BYTES,
  },
  threads: amount,
  sqlAccess: {
    expected: '"all", "lake" or { folders } with an array of texts',
    accepts: (value) =>
      value === "all" ||
      value === "lake" ||
      (isPlain(value) && Object.keys(value).join() === "folders" && areTexts((value as { folders: unknown }).folders)),
  },
  maintenance: oneOf("manual", "auto"),
  logger: object,
  clock: callback,
  random: callback,
  timer: object,
};

const TABLE: Rules<TableOptions> = {
  // Has many forms, and errors of its own.
  schema: anything,
  partitionBy: texts,
  orderBy: texts,
};

const CSV: Rules<CsvOptions> = {
  delimiter: text,
  quote: text,
  escape: text,
  header: {
    expected: "true, false or an array of names",
    accepts: (value) => typeof value === "boolean" || areTexts(value),
  },
  nullValues: texts,
  ragged: oneOf("error", "pad"),
  encoding: oneOf("utf-8", "utf-16le", "utf-16be", "windows-1252"),
  trim: truth,
};

const APPEND: Rules<AppendOptions> = {
  // Its own error says what an id is.
  batchId: anything,
  cursor: object,
  format: oneOf("ndjson", "json", "csv", "tsv", "parquet", "arrow"),
  csv: object,
  schemaMode: oneOf("evolve", "strict", "ignore"),
  onReject: oneOf("fail", "quarantine"),
  maxRejects: amount,
  inferTimestamps: truth,
  maxStructKeys: amount,
  maxColumns: amount,
  onSeen: oneOf("verify", "trust"),
  meta: object,
  signal,
  onProgress: callback,
};

const { cursor: _, ...WITHOUT_CURSOR } = APPEND;
const APPEND_PARTS: Rules<AppendPartsOptions> = {
  ...WITHOUT_CURSOR,
  partBytes: {
    expected: "a whole number from 1 on",
    accepts: (value) => Number.isSafeInteger(value) && Number(value) > 0,
  },
};

const REJECTS: Rules<RejectsOptions> = { batchId: text, ids: texts, open: truth, after: text, limit: amount };

const REPLAY: Rules<ReplayOptions> = {
  map: callback,
  format: oneOf("ndjson", "csv", "tsv"),
  csv: object,
  schemaMode: oneOf("evolve", "strict", "ignore"),
  onReject: oneOf("fail", "quarantine"),
  maxRejects: amount,
  meta: object,
  signal,
  onProgress: callback,
};

const PURGE_REJECTS: Rules<PurgeRejectsOptions> = {
  ids: texts,
  batchId: text,
  before: {
    expected: "a snapshot's number or a Date",
    accepts: (value) => (value instanceof Date ? !Number.isNaN(value.getTime()) : Number.isSafeInteger(value)),
  },
  signal,
  onProgress: callback,
};

const CURSOR_MOVE: Rules<CursorMove> = { name: text, from: text, to: text };

const TRANSACTION: Rules<TransactionOptions> = {
  expectSnapshot: {
    expected: '"base" or the number of a snapshot',
    accepts: (value) => value === "base" || (Number.isSafeInteger(value) && Number(value) >= 0),
  },
  meta: object,
  signal,
};

const FEED: Rules<FeedOptions> = {
  after: text,
  // What is a snapshot and what is not, the feed says itself.
  until: anything,
  follow: truth,
  pollMs: amount,
  signal,
};

const QUERY: Rules<QueryOptions> = {
  signal,
  timeoutMs: amount,
  // What is an instant and what is not, the query says itself.
  at: anything,
  values: oneOf("exact", "json"),
  tables: object,
  prune: truth,
};

const { tables: __, ...SCOPE_QUERY } = QUERY;

const SCOPE: Rules<ScopeOptions> = {
  tables: object,
  limits: object,
  onLimit: oneOf("error", "truncate"),
  history: truth,
  threads: amount,
};

const GRANT: Rules<TableGrant> = {
  where: {
    expected: "what the tag sql makes",
    accepts: (value) => isPlain(value) && "text" in value && "params" in value,
  },
  columns: texts,
};

const LIMITS: Rules<ScopeLimits> = {
  rows: amount,
  bytes: amount,
  timeoutMs: amount,
  memoryBytes: amount,
  concurrency: { expected: "a number from 1 on", accepts: (value) => typeof value === "number" && value >= 1 },
};

/** Their values have errors of their own, where the encoder looks at them. */
const FILES: Rules<FileOptions> = {
  compression: text,
  compressionLevel: amount,
  pageRows: amount,
  dictionary: { expected: '"auto" or false', accepts: (value) => value === "auto" || value === false },
  statistics: oneOf("page", "chunk", "none"),
  statisticsTruncateBytes: amount,
  pageIndex: truth,
  columns: object,
  rowGroupRows: amount,
  rowGroupBytes: amount,
  maxOpenPartitions: amount,
  bufferBytes: amount,
};
const ROTATION: Rules<Rotation> = { rows: amount, bytes: amount, ageMs: amount };

const OBJECT_WRITER: Rules<ObjectWriterOptions> = {
  ...FILES,
  // Have many forms, and errors of their own.
  schema: anything,
  schemaFile: anything,
  unknownFields: oneOf("error", "ignore"),
  partitionBy: texts,
  path: text,
  id: text,
  rotate: object,
  keyValues: object,
  onWritten: callback,
  signal,
  onProgress: callback,
};

const TABLE_WRITER: Rules<TableWriterOptions> = {
  ...FILES,
  batchId: anything,
  commit: oneOf("close", "rotate"),
  rotate: object,
  schemaMode: oneOf("evolve", "strict", "ignore"),
  onReject: oneOf("fail", "quarantine"),
  maxRejects: amount,
  meta: object,
  onCommitted: callback,
  signal,
  onProgress: callback,
};

const MAINTAIN: Rules<MaintainOptions> = {
  graceMs: amount,
  fold: {
    expected: '"all", "none" or an object of limits',
    accepts: (value) => value === "all" || value === "none" || isPlain(value),
  },
  retain: {
    expected: '"all", "none" or an object with snapshots or ageMs',
    accepts: (value) => value === "all" || value === "none" || isPlain(value),
  },
  queryMaxAgeMs: amount,
  cursorMaxAgeMs: amount,
  budgetMs: amount,
  signal,
  onProgress: callback,
};
const RETENTION: Rules<Exclude<Retention, string>> = { snapshots: amount, ageMs: amount };
const FOLD_LIMITS: Rules<FoldLimits> = { bytes: amount, batches: amount, ageMs: amount };
const CREATE_VIEW: Rules<CreateViewOptions> = { orReplace: truth };
const COPY: Rules<CopyOptions> = { signal, onProgress: callback };

const REBUILD: Rules<RebuildOptions> = { signal, onProgress: callback, logger: object };

const VERIFY: Rules<VerifyOptions> = { hashes: truth, signal, onProgress: callback };

/** @throws InvalidInputError `bad_option` */
export const checkLakeOptions = (options: LakeOptions): void => check("Lake.open", options, LAKE);
/** @throws InvalidInputError `bad_option` */
export const checkTableOptions = (options: TableOptions): void => check("lake.table", options, TABLE);
/** @throws InvalidInputError `bad_option` */
export const checkQueryOptions = (options: QueryOptions): void => check("lake.with", options, QUERY);
/** @throws InvalidInputError `bad_option` */
export const checkScopeQueryOptions = (options: Omit<QueryOptions, "tables">): void =>
  check("scope.with", options, SCOPE_QUERY);
/** @throws InvalidInputError `bad_option` */
export const checkScopeOptions = (options: ScopeOptions): void => {
  check("lake.scope", options, SCOPE);
  if (options.tables === undefined) {
    throw new InvalidInputError("bad_option", "lake.scope needs tables: what is not granted there is not shown", {
      subject: "tables",
    });
  }
  if (options.limits !== undefined) check("a scope's limits", options.limits, LIMITS);
  for (const [table, grant] of Object.entries(options.tables)) check(`the grant of table ${table}`, grant, GRANT);
};
/** @throws InvalidInputError `bad_option` */
export const checkMaintainOptions = (options: MaintainOptions): void => {
  check("lake.maintain", options, MAINTAIN);
  if (typeof options.fold === "object") check("the limits of fold", options.fold, FOLD_LIMITS);
  if (typeof options.retain !== "object") return;
  check("what retain keeps", options.retain, RETENTION);
  if (options.retain.snapshots === undefined && options.retain.ageMs === undefined) {
    throw new InvalidInputError(
      "bad_option",
      'retain needs snapshots or ageMs: "none" keeps only what the tables are now',
      { subject: "retain" },
    );
  }
};
/** @throws InvalidInputError `bad_option` */
export const checkCopyOptions = (name: "copyTo" | "share", options: CopyOptions): void =>
  check(`lake.${name}`, options, COPY);
/** @throws InvalidInputError `bad_option` */
export const checkCreateViewOptions = (options: CreateViewOptions): void =>
  check("lake.createView", options, CREATE_VIEW);
/** @throws InvalidInputError `bad_option` */
export const checkRebuildOptions = (options: RebuildOptions): void => check("Lake.rebuild", options, REBUILD);
/** @throws InvalidInputError `bad_option` */
export const checkVerifyOptions = (options: VerifyOptions): void => check("lake.verify", options, VERIFY);
/** @throws InvalidInputError `bad_option` */
export const checkAppendOptions = (options: AppendOptions): void => {
  check("append", options, APPEND);
  if (options.csv !== undefined) check("append's csv", options.csv, CSV);
  if (options.cursor !== undefined) checkCursorMove("append's cursor", options.cursor);
};
/** @throws InvalidInputError `bad_option` */
export const checkRejectsOptions = (options: RejectsOptions): void => check("table.rejects", options, REJECTS);
/** @throws InvalidInputError `bad_option` */
export const checkReplayOptions = (options: ReplayOptions): void => {
  check("table.replay", options, REPLAY);
  if (options.csv !== undefined) check("replay's csv", options.csv, CSV);
};
/** @throws InvalidInputError `bad_option`, also unless exactly one thing says which */
export const checkPurgeRejectsOptions = (options: PurgeRejectsOptions): void => {
  check("table.purgeRejects", options, PURGE_REJECTS);
  const given = [options.ids, options.batchId, options.before].filter((one) => one !== undefined);
  if (given.length !== 1) {
    throw new InvalidInputError("bad_option", "table.purgeRejects takes exactly one of ids, batchId and before");
  }
};
/** @throws InvalidInputError `bad_option`, also where something is missing */
export const checkAppendPartsOptions = (options: AppendPartsOptions): void => {
  check("appendParts", options, APPEND_PARTS);
  if (options.csv !== undefined) check("append's csv", options.csv, CSV);
  if (options.batchId === undefined) {
    throw new InvalidInputError("bad_option", "appendParts needs a batchId, by which another try goes on", {
      subject: "batchId",
    });
  }
  if (typeof options.batchId !== "string") {
    throw new InvalidInputError("bad_batch_id", "the batchId of appendParts has to be a text", { subject: "batchId" });
  }
};
/** @throws InvalidInputError `bad_option`, also where something is missing */
export const checkCursorMove = (what: string, move: CursorMove): void => {
  check(what, move, CURSOR_MOVE);
  for (const name of ["name", "from", "to"] as const) {
    if (move[name] === undefined) {
      throw new InvalidInputError("bad_option", `${what} needs name, from and to`, { subject: name });
    }
  }
};
/** @throws InvalidInputError `bad_option` */
export const checkTransactionOptions = (options: TransactionOptions): void =>
  check("lake.transaction", options, TRANSACTION);
/** @throws InvalidInputError `bad_option` */
export const checkFeedOptions = (options: FeedOptions): void => check("table.changes", options, FEED);

/** @throws InvalidInputError `bad_option` */
export const checkObjectWriterOptions = (options: ObjectWriterOptions): void => {
  check("ParquetObjectWriter.open", options, OBJECT_WRITER);
  if (options.rotate !== undefined) check("a writer's rotate", options.rotate, ROTATION);
};
/** @throws InvalidInputError `bad_option` */
export const checkTableWriterOptions = (options: TableWriterOptions): void => {
  check("table.writer", options, TABLE_WRITER);
  if (options.rotate !== undefined) check("a writer's rotate", options.rotate, ROTATION);
  if (options.rotate?.ageMs !== undefined && options.commit !== "rotate") {
    throw new InvalidInputError(
      "bad_option",
      'the rows of this writer are committed when it is closed, however old they are: rotate.ageMs needs commit: "rotate"',
      { subject: "ageMs" },
    );
  }
};

function check<T extends object>(what: string, options: T, rules: Rules<T>): void {
  const known: Readonly<Record<string, Rule>> = rules;
  if (!isPlain(options)) {
    throw new InvalidInputError("bad_option", `the options of ${what} have to be an object with ${list(rules)}`);
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const rule = Object.hasOwn(known, name) ? known[name] : undefined;
    if (rule === undefined) {
      throw new InvalidInputError("bad_option", `${what} has no option ${JSON.stringify(name)}, only ${list(rules)}`, {
        subject: name,
      });
    }
    if (!rule.accepts(value)) {
      throw new InvalidInputError("bad_option", `the option ${name} of ${what} has to be ${rule.expected}`, {
        subject: name,
      });
    }
  }
}

function list(rules: object): string {
  return Object.keys(rules).join(", ");
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
