/** DuckDB's errors as ours. */

import { type EiderError, InvalidInputError, LimitError, nameKey, QueryError } from "@eider/core";
import { quoteName } from "./sql-tokens.js";

/** What `errors_as_json` gives, and what can be read from a message without it. */
export interface DuckDBError {
  /** DuckDB's word: `Parser`, `Binder`, `Catalog`, `Conversion`, `IO`, … */
  readonly type: string;
  readonly message: string;
  /** Bytes of UTF-8 into the SQL. */
  readonly position: number | undefined;
  readonly subtype: string | undefined;
  /** For missing entries: `Table`, `Scalar Function`, … and its name. */
  readonly entryType: string | undefined;
  readonly name: string | undefined;
}

export function readDuckDBError(error: unknown): DuckDBError {
  const text = error instanceof Error ? error.message : String(error);
  const start = text.indexOf('{"exception_type"');
  if (start >= 0) {
    try {
      const fields = JSON.parse(text.slice(start)) as Record<string, string | undefined>;
      const position = Number(fields.position);
      return {
        type: fields.exception_type ?? "",
        message: fields.exception_message ?? "",
        position: fields.position !== undefined && Number.isSafeInteger(position) ? position : undefined,
        subtype: fields.error_subtype,
        entryType: fields.type,
        name: fields.name,
      };
    } catch {
      // Not JSON after all: the text says what there is to say.
    }
  }
  const plain = /^(?:(\w[\w ]*?) Error: )?([\s\S]*)$/.exec(text);
  return {
    type: plain?.[1] ?? "",
    message: plain?.[2] ?? text,
    position: undefined,
    subtype: undefined,
    entryType: undefined,
    name: undefined,
  };
}

/** Whether the instance is of no more use. */
export function isFatal({ type, message }: DuckDBError): boolean {
  return /^(INTERNAL|FATAL)$/i.test(type) || message.includes("database has been invalidated");
}

export interface ErrorContext {
  /** The user's SQL. */
  readonly sql: string;
  /** Character offset in the user's SQL from a byte offset in what DuckDB was given. */
  readonly positionOf: (byteOffset: number) => number | undefined;
  /** Names of all tables and views at the snapshot, for suggestions. */
  readonly tables: readonly string[];
  /** By `nameKey`: why a view cannot be read. */
  readonly broken?: ReadonlyMap<string, string>;
}

/** Databases of sessions, which the user knows nothing of; see `session.ts`. */
const SESSION_DATABASE = /"?_eider_(?:\d+|alone)(_at_\d+)?"?\./g;

/** As for ``sql`SELECT * FROM ${name}` ``. */
const PARAMETER_IN_PLACE = /^syntax error at or near "(\$\w+|\?)"$/;
const PARAMETER_HINT =
  "a parameter stands for a value, never for the name of a table or column; some places take one in parentheses only, as INTERVAL (…) DAY";

/** The error for the user. Errors about files come out as `sql_error`: see `LocalFiles.findFault`. */
export function toQueryError(error: DuckDBError, context: ErrorContext, cause: unknown): EiderError {
  const position = error.position === undefined ? undefined : context.positionOf(error.position);
  const message = error.message.trim().replace(SESSION_DATABASE, "");
  const make = (code: string, text: string, subject?: string): QueryError =>
    new QueryError(code, text, {
      cause,
      ...(position !== undefined && { position }),
      ...(subject !== undefined && { subject }),
    });
  switch (error.type) {
    case "Parser":
      return make("syntax_error", PARAMETER_IN_PLACE.test(message) ? `${message}: ${PARAMETER_HINT}` : message);
    case "Catalog":
      return missingEntry(error, message, context, make);
    case "Binder": {
      if (error.subtype === "COLUMN_NOT_FOUND" || /does not have a column named|Referenced column/.test(message)) {
        return make("unknown_column", message, error.name);
      }
      if (/^(Catalog|Referenced table) "/.test(message))
        return unknownTable(/"(.*?)"/.exec(message)?.[1], context, make);
      return make(isTypeProblem(error) ? "type_error" : "sql_error", message);
    }
    case "Conversion":
    case "Mismatch Type":
      return make("type_error", withoutValues(message, context.sql));
    case "Out of Range":
      return make("out_of_range", withoutValues(message, context.sql));
    case "Out of Memory":
      return new LimitError(
        "out_of_memory",
        `the query needs more than its memory: raise memoryBytes, lower threads, or read less at once (${firstLine(message)})`,
        { cause },
      );
    case "Interrupt":
    case "INTERRUPT":
      return make("interrupted", "the query was interrupted");
    case "Missing Extension":
      return make("missing_extension", `${firstLine(message)} (extensions are not downloaded)`);
    case "Permission":
      if (!/^Cannot access (file|directory)/.test(message)) return make("sql_error", message);
      return make(
        "file_refused",
        `${firstLine(message).split(" - ")[0]}: SQL of this lake reads no files but its own. For files that you trust it with, ` +
          'open the lake with sqlAccess: { folders: ["/data"] }, or "all"',
      );
    case "IO":
      return make(message.startsWith("No files found") ? "file_not_found" : "sql_error", message);
    case "Invalid Input":
      return make("sql_error", message);
    default:
      return make("sql_error", message || "DuckDB failed without saying why");
  }
}

type Make = (code: string, text: string, subject?: string) => QueryError;

function missingEntry(error: DuckDBError, message: string, context: ErrorContext, make: Make): QueryError {
  const name = error.name ?? /with name "?(.*?)"? does not exist/.exec(message)?.[1];
  const isTable = error.entryType === undefined ? /^Table with name/.test(message) : error.entryType === "Table";
  if (isTable) return unknownTable(name, context, make);
  if (error.entryType?.includes("Function")) return make("unknown_function", message, name);
  return make("sql_error", message, name);
}

/** A view that its tables have left behind. */
export function brokenView(name: string, problem: string, cause?: unknown): QueryError {
  return new QueryError("view_broken", `the view ${JSON.stringify(name)} cannot be read: ${problem}`, {
    subject: name,
    ...(cause !== undefined && { cause }),
  });
}

function unknownTable(name: string | undefined, context: ErrorContext, make: Make): QueryError {
  for (const [view, problem] of context.broken ?? []) {
    // DuckDB tells the last part of a name.
    if (view === nameKey(name ?? "") || view.endsWith(`.${nameKey(name ?? "")}`)) return brokenView(view, problem);
  }
  return make("unknown_table", unknownTableMessage(name ?? "", context.tables), name);
}

/** Names the tables most like the one asked for. */
export function unknownTableMessage(name: string, tables: readonly string[]): string {
  const quoted = (names: readonly string[], word: string): string =>
    names.map((table) => JSON.stringify(table)).join(word);
  const close = closestNames(name, tables);
  const same = tables.find((table) => table.toLowerCase() === name.toLowerCase());
  const hint =
    tables.length === 0
      ? "the lake has no table at this snapshot"
      : same !== undefined
        ? `quote the parts of a name, not the dot in it: ${same.split(".").map(quoteName).join(".")}`
        : close.length > 0
          ? `did you mean ${quoted(close, " or ")}?`
          : tables.length <= 5
            ? `there are ${quoted(tables, ", ")}`
            : `SHOW ALL TABLES lists the ${tables.length} that there are`;
  return `there is no table ${JSON.stringify(name)}: ${hint}`;
}

function closestNames(name: string, tables: readonly string[]): string[] {
  const wanted = name.toLowerCase();
  const last = wanted.slice(wanted.lastIndexOf(".") + 1);
  return tables
    .map((table) => {
      const own = table.toLowerCase();
      const distance = Math.min(editDistance(wanted, own), editDistance(last, own.slice(own.lastIndexOf(".") + 1)));
      return { table, distance };
    })
    .filter(({ distance }) => distance <= Math.min(3, Math.max(1, wanted.length / 3)))
    .sort((a, b) => a.distance - b.distance || (a.table < b.table ? -1 : 1))
    .slice(0, 3)
    .map(({ table }) => table);
}

/** Levenshtein's distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}

function isTypeProblem(error: DuckDBError): boolean {
  return (
    error.subtype === "NO_MATCHING_FUNCTION" || /Cannot (compare|mix|cast|combine)|type mismatch/i.test(error.message)
  );
}

/** Cuts out what a row held: quoted texts and numbers that the user's SQL does not contain. */
function withoutValues(message: string, sql: string): string {
  const hide = (all: string, inner: string): string =>
    inner === "" || sql.includes(inner) ? all : all.replace(inner, "…");
  return message
    .replace(/'((?:[^'])*)'/g, hide)
    .replace(/"((?:[^"\\]|\\.)*)"/g, hide)
    .replace(/(?<![\w.])-?(\d[\d.]*(?:e[+-]?\d+)?)(?![\w])/gi, hide);
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!;
}

/** A file to import. `name` is what errors call it: users know nothing of temporary copies. */
export interface NamedFile {
  readonly path: string;
  readonly name: string;
}

/** For a failed import: the file, not an SQL text, is at fault. */
export function toImportError(error: unknown, { path, name }: NamedFile): EiderError {
  const { type, message: said } = readDuckDBError(error);
  const message = said.replaceAll(`'${path}'`, name).replaceAll(path, name);
  if (type === "Out of Memory") {
    return new LimitError("out_of_memory", `a row group of ${name} needs more memory than an import has`, {
      cause: error,
    });
  }
  if (/at least one non-root column/.test(message)) {
    return new InvalidInputError("no_columns", `${name} has no columns`, { cause: error, subject: name });
  }
  return new InvalidInputError("bad_parquet", `${name} cannot be read as Parquet: ${firstLine(message)}`, {
    cause: error,
    subject: name,
  });
}
