/** `eider.changes('table', after[, until])` in a statement: in place of a table, what was committed to one. */

import { QueryError } from "@eider/core";
import { closing, isName, isSymbol, isWord, type Token } from "./sql-tokens.js";
import type { Parameter } from "./statement.js";

/** A call, with what it was given. */
export interface ChangesCall {
  /** Characters `[start, end)` of the call. */
  readonly start: number;
  readonly end: number;
  readonly table: string | Parameter;
  /** A snapshot: digits, a tag or an instant. */
  readonly after: string | Parameter;
  /** Default: the query's snapshot. */
  readonly until: string | Parameter | undefined;
}

/** Words before a table. */
const PLACES = ["FROM", "JOIN", "LATERAL", "DESCRIBE", "SUMMARIZE", "PIVOT", "UNPIVOT"];

/** @throws QueryError `bad_changes` */
export function findChangesCalls(tokens: readonly Token[], parameters: readonly Parameter[]): ChangesCall[] {
  const calls: ChangesCall[] = [];
  for (let i = 0; i + 3 < tokens.length; i++) {
    if (!isCall(tokens, i)) continue;
    const [start, close] = [tokens[i]!.start, closing(tokens, i + 3)];
    const bad = (reason: string): never => {
      throw new QueryError("bad_changes", `eider.changes('table', after, until) ${reason}`, { position: start });
    };
    const before = tokens[i - 1];
    if (!PLACES.some((word) => isWord(before, word)) && !isSymbol(before, ",") && !isSymbol(before, "(")) {
      bad("stands in FROM, as a table does");
    }
    const given = listed(tokens.slice(i + 4, close)).map((argument) => {
      const [token] = argument;
      if (argument.length !== 1 || !token) return bad("takes literals and parameters alone");
      if (token.kind === "parameter") return parameters.find((one) => one.start === token.start)!;
      if (token.kind === "string" || (token.kind === "number" && /^\d+$/.test(token.value))) return token.value;
      return bad("takes a table's name, and snapshots by number, tag or time");
    });
    const [table, after, until] = given;
    if (table === undefined || after === undefined || given.length > 3) return bad("takes two or three arguments");
    calls.push({ start, end: tokens[close]!.end, table, after, until });
  }
  return calls;
}

function isCall(tokens: readonly Token[], at: number): boolean {
  const [eider, dot, name, open] = tokens.slice(at, at + 4);
  return (
    isName(eider) &&
    eider.value.toLowerCase() === "eider" &&
    isSymbol(dot, ".") &&
    isName(name) &&
    name.value.toLowerCase() === "changes" &&
    isSymbol(open, "(") &&
    !isSymbol(tokens[at - 1], ".")
  );
}

/** What stands between commas. */
function listed(tokens: readonly Token[]): Token[][] {
  const lists: Token[][] = [[]];
  for (const token of tokens) {
    if (isSymbol(token, ",")) lists.push([]);
    else lists.at(-1)!.push(token);
  }
  return lists;
}
