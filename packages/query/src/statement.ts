/** What an SQL text says on its face: one statement that only reads, the names in it, its parameters, its snapshots. */

import { QueryError } from "@eider/core";
import { type ChangesCall, findChangesCalls } from "./changes-call.js";
import { closing, isName, isSymbol, isWord, type Token, tokenize, UnterminatedToken } from "./sql-tokens.js";

export interface Statement {
  /** The SQL without what follows its `;`. Offsets equal those of the user's text. */
  readonly text: string;
  /** Its first word, upper-case. */
  readonly opening: string;
  /** Whether it can stand in `FROM (…)`. */
  readonly nests: boolean;
  /** Characters `[start, end)` of the query itself: what EXPLAIN explains, and what `COPY (…) TO` copies. */
  readonly query: { readonly start: number; readonly end: number };
  readonly explains: boolean;
  /** Whether it writes a file, as `COPY … TO` does. */
  readonly writesFile: boolean;
  /** Every name and every text literal, lower-case: whatever could mean a table. */
  readonly names: ReadonlySet<string>;
  /** Whether it is `SHOW TABLES`, and nothing more. */
  readonly showsTables: boolean;
  /** Whether the result depends on which tables exist, as `SHOW TABLES` does. */
  readonly needsAllTables: boolean;
  /** Whether it says `IS [NOT] DISTINCT FROM`. */
  readonly comparesNulls: boolean;
  /** In order of appearance. */
  readonly parameters: readonly Parameter[];
  readonly timeTravels: readonly TimeTravel[];
  readonly changesCalls: readonly ChangesCall[];
}

export interface Parameter {
  readonly kind: "plain" | "numbered" | "named";
  /** The n-th `?` is `n`, `$1` and `?1` are `1`, `$name` is `name`: as DuckDB calls it. */
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** `<table> [[AS] alias] AT (VERSION|TIMESTAMP => …)`. */
export interface TimeTravel {
  /** The table reference: `[namespace, name]` or `[name]`. */
  readonly path: readonly string[];
  readonly pathStart: number;
  /** The `AT (…)` clause. */
  readonly start: number;
  readonly end: number;
  readonly by: "version" | "timestamp";
  readonly value: string | Parameter;
}

const READING: ReadonlySet<string> = new Set([
  "SELECT",
  "FROM",
  "VALUES",
  "TABLE",
  "PIVOT",
  "PIVOT_WIDER",
  "PIVOT_LONGER",
  "UNPIVOT",
  "DESCRIBE",
  "DESC",
  "SHOW",
  "SUMMARIZE",
  "(",
]);

const ADVICE: Readonly<Record<string, string>> = {
  INSERT: "add rows with table.append(rows)",
  UPDATE: "add rows with table.append(rows); committed rows do not change by SQL",
  MERGE: "add rows with table.append(rows); committed rows do not change by SQL",
  DELETE: "drop a whole table with lake.table(name).drop(); committed rows do not change by SQL",
  TRUNCATE: "drop a whole table with lake.table(name).drop()",
  CREATE: "make a table with lake.table(name, options) and its first append, a view with lake.createView(name, sql)",
  DROP: "drop a table with lake.table(name).drop(), a view with lake.dropView(name)",
  ALTER: "append rows that have the new field: the table gains it",
  COPY: "load a file with table.append({ file })",
  IMPORT: "load a file with table.append({ file })",
  ATTACH: "read other files with read_parquet, read_csv or read_json in FROM",
  SET: "the session's settings are fixed; memory and threads are options of Lake.open",
  PRAGMA: "use DESCRIBE, SHOW TABLES or SUMMARIZE",
  CALL: "call table functions as SELECT * FROM f(…)",
};

/** Words after which a table's name follows, so that the name before `AT` is no alias. */
const TABLE_FOLLOWS: ReadonlySet<string> = new Set([
  "FROM",
  "JOIN",
  "DESCRIBE",
  "DESC",
  "SUMMARIZE",
  "SHOW",
  "TABLE",
  "PIVOT",
  "PIVOT_WIDER",
  "PIVOT_LONGER",
  "UNPIVOT",
]);

/** Functions and views through which a statement sees tables that it does not name. */
const SEES_ALL =
  /^(query|information_schema|pg_catalog|pg_.*|sqlite_master|sqlite_schema|duckdb_(tables|views|columns))$/;

/**
 * @throws QueryError `syntax_error`, `multiple_statements`, `read_only_sql`, `bad_snapshot`
 */
export function parseStatement(sql: string): Statement {
  const nul = sql.indexOf("\0");
  if (nul >= 0) throw new QueryError("syntax_error", "the SQL holds a NUL character", { position: nul });
  const all = tokensOf(sql);
  const end = all.findIndex((token) => isSymbol(token, ";"));
  const tokens = end < 0 ? all : all.slice(0, end);
  if (tokens.length === 0) throw new QueryError("syntax_error", "the SQL holds no statement", { position: 0 });
  const extra = end < 0 ? undefined : all.slice(end).find((token) => !isSymbol(token, ";"));
  if (extra) {
    throw new QueryError("multiple_statements", "one call runs one statement: pass each to its own call", {
      position: extra.start,
    });
  }
  const head = checkReadOnly(tokens, 0);
  const parameters = tokens.filter((token) => token.kind === "parameter").map(toParameter);
  const changesCalls = findChangesCalls(tokens, parameters);
  const names = new Set<string>();
  for (const token of tokens) {
    // What a call names it finds itself.
    if (changesCalls.some(({ start, end }) => token.start > start && token.end < end)) continue;
    if (token.kind === "string" || isName(token)) names.add(token.value.toLowerCase());
  }
  const explained = head === "EXPLAIN" ? afterExplain(tokens, 0) : 0;
  return {
    text: end < 0 ? sql : sql.slice(0, all[end]!.start),
    opening: tokens[0]!.value.toUpperCase(),
    nests: head !== "EXPLAIN" && head !== "COPY",
    query: queryWithin(tokens, explained),
    explains: head === "EXPLAIN",
    writesFile: isWord(tokens[explained], "COPY"),
    names,
    showsTables: tokens.length === 2 && isWord(tokens[0], "SHOW") && isWord(tokens[1], "TABLES"),
    needsAllTables: head === "SHOW" || [...names].some((name) => SEES_ALL.test(name)),
    comparesNulls: tokens.some((token, i) => isWord(token, "DISTINCT") && isWord(tokens[i + 1], "FROM")),
    parameters,
    timeTravels: findTimeTravels(tokens, parameters),
    changesCalls,
  };
}

function tokensOf(sql: string): Token[] {
  try {
    return tokenize(sql);
  } catch (error) {
    if (!(error instanceof UnterminatedToken)) throw error;
    throw new QueryError("syntax_error", error.message, { position: error.start });
  }
}

function toParameter({ value, start, end }: Token, index: number): Parameter {
  if (value === "") return { kind: "plain", name: String(index + 1), start, end };
  return { kind: /^\d+$/.test(value) ? "numbered" : "named", name: value, start, end };
}

/** The statement's first word, upper-case; throws unless it only reads. */
function checkReadOnly(tokens: readonly Token[], start: number): string {
  const first = tokens[start];
  const head = first === undefined ? "" : first.value.toUpperCase();
  if (first === undefined || first.kind === "quoted" || first.kind === "string") return head;
  if (READING.has(head)) return head;
  if (head === "WITH") return checkReadOnly(tokens, afterCommonTables(tokens, start));
  if (head === "EXPLAIN") {
    checkReadOnly(tokens, afterExplain(tokens, start));
    return head;
  }
  if (head === "COPY" && copiesOut(tokens, start)) return head;
  if (first.kind !== "word" || !STATEMENTS.has(head)) return head;
  const advice = ADVICE[head];
  throw new QueryError("read_only_sql", `${head} is refused, SQL only reads${advice ? `: ${advice}` : ""}`, {
    position: first.start,
  });
}

/** Statements of DuckDB that do more than read. Other first words are left to its parser to complain about. */
const STATEMENTS: ReadonlySet<string> = new Set([
  ...Object.keys(ADVICE),
  ..."ABORT ANALYZE BEGIN CHECKPOINT COMMENT COMMIT DEALLOCATE DETACH END EXECUTE EXPORT FORCE GRANT INSTALL LOAD PREPARE REINDEX".split(
    " ",
  ),
  ..."REPLACE RESET REVOKE ROLLBACK START UNINSTALL USE VACUUM".split(" "),
]);

/** Index of the statement proper behind `WITH a AS (…), b(x) AS (…)`: the first token after a `)` that continues no list. */
function afterCommonTables(tokens: readonly Token[], start: number): number {
  let depth = 0;
  for (let i = start + 1; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (isSymbol(token, "(")) {
      if (depth === 0 && isSymbol(tokens[i - 1], ")")) return i;
      depth++;
    } else if (isSymbol(token, ")")) depth--;
    else if (depth === 0 && isSymbol(tokens[i - 1], ")")) {
      if (!isSymbol(token, ",") && !isWord(token, "AS") && !isWord(token, "USING")) return i;
    }
  }
  return tokens.length;
}

function afterExplain(tokens: readonly Token[], start: number): number {
  let i = start + 1;
  if (isWord(tokens[i], "ANALYZE") || isWord(tokens[i], "ANALYSE")) i++;
  const inner = tokens[i + 1]?.value.toUpperCase() ?? "";
  if (isSymbol(tokens[i], "(") && !READING.has(inner) && inner !== "WITH") i = closing(tokens, i) + 1;
  return i;
}

/** The query of a statement that begins at token `first`. */
function queryWithin(tokens: readonly Token[], first: number): Statement["query"] {
  const start = tokens[first]?.start ?? 0;
  if (!isWord(tokens[first], "COPY") || !isSymbol(tokens[first + 1], "(")) return { start, end: tokens.at(-1)!.end };
  return { start: tokens[first + 1]!.end, end: tokens[closing(tokens, first + 1)]!.start };
}

/** Whether a COPY writes a file: its first `TO` or `FROM` outside parentheses is `TO`. */
function copiesOut(tokens: readonly Token[], start: number): boolean {
  for (let i = start + 1; i < tokens.length; i++) {
    if (isSymbol(tokens[i], "(")) i = closing(tokens, i);
    else if (isWord(tokens[i], "TO")) return true;
    else if (isWord(tokens[i], "FROM")) return false;
  }
  return false;
}

function opening(tokens: readonly Token[], close: number): number {
  let depth = 0;
  for (let i = close; i >= 0; i--) {
    if (isSymbol(tokens[i], ")")) depth++;
    else if (isSymbol(tokens[i], "(") && --depth === 0) return i;
  }
  return 0;
}

function findTimeTravels(tokens: readonly Token[], parameters: readonly Parameter[]): TimeTravel[] {
  const found: TimeTravel[] = [];
  for (let i = 1; i + 4 < tokens.length; i++) {
    if (!isWord(tokens[i], "AT") || !isSymbol(tokens[i + 1], "(") || !isSymbol(tokens[i + 3], "=>")) continue;
    const by = tokens[i + 2]!.value.toLowerCase();
    if (by !== "version" && by !== "timestamp") continue;
    const close = closing(tokens, i + 1);
    const { first, last } = tableBefore(tokens, i);
    found.push({
      path: tokens
        .slice(first, last + 1)
        .filter(isName)
        .map((token) => token.value),
      pathStart: tokens[first]!.start,
      start: tokens[i]!.start,
      end: tokens[close]!.end,
      by,
      value: snapshotValue(tokens.slice(i + 4, close), by, tokens[i + 4]!.start, parameters),
    });
  }
  return found;
}

/** The table reference that an `AT` at index `at` belongs to. DuckDB's grammar puts the alias before `AT`. */
function tableBefore(tokens: readonly Token[], at: number): { first: number; last: number } {
  let last = at - 1;
  const hasColumns = isSymbol(tokens[last], ")");
  if (hasColumns) last = opening(tokens, last) - 1;
  let first = pathStart(tokens, last);
  const before = tokens[first - 1];
  if (isWord(before, "AS")) {
    last = first - 2;
    first = pathStart(tokens, last);
  } else if (
    first === last &&
    isName(before) &&
    !(before.kind === "word" && TABLE_FOLLOWS.has(before.value.toUpperCase()))
  ) {
    last = first - 1;
    first = pathStart(tokens, last);
  }
  const parts = (last - first) / 2 + 1;
  if (!isName(tokens[last]) || parts > 2) {
    throw new QueryError("syntax_error", "AT (…) follows a table's name, or the alias of one", {
      position: tokens[at]!.start,
    });
  }
  return { first, last };
}

function pathStart(tokens: readonly Token[], last: number): number {
  let first = last;
  while (isSymbol(tokens[first - 1], ".") && isName(tokens[first - 2])) first -= 2;
  return first;
}

function snapshotValue(
  tokens: readonly Token[],
  by: TimeTravel["by"],
  position: number,
  parameters: readonly Parameter[],
): string | Parameter {
  const typed = by === "timestamp" && tokens.length === 2 && /^(TIMESTAMP|TIMESTAMPTZ|DATE)$/i.test(tokens[0]!.value);
  const value = tokens.length === 1 ? tokens[0] : typed ? tokens[1] : undefined;
  if (value?.kind === "parameter") return parameters.find((parameter) => parameter.start === value.start)!;
  if (value?.kind === "string" || (value?.kind === "number" && by === "version")) return value.value;
  throw new QueryError(
    "bad_snapshot",
    by === "version"
      ? "AT (VERSION => n) takes a snapshot's number or a parameter"
      : "AT (TIMESTAMP => t) takes a text in ISO 8601 or a parameter",
    { position },
  );
}
