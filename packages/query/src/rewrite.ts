/** A statement as DuckDB is given it: `AT (…)` is no clause but a database of that snapshot, and a call of `eider.changes` a table. */

import { type BoundParameters, literalOf } from "./parameters.js";
import type { SqlParam } from "./query.js";
import { quoteName } from "./sql-tokens.js";
import type { Parameter, Statement } from "./statement.js";
import { TextEdits } from "./text-edits.js";

/** What the databases of a session are called: that of the query's own snapshot, and the others by theirs. */
export interface Databases {
  readonly database: string;
  readonly databases: ReadonlyMap<number, string>;
}

/** The statement with `t AT (…)` as a table of that snapshot's database. */
export function rewrite(
  statement: Statement,
  values: BoundParameters,
  travels: readonly number[],
  session: Databases,
): { sql: string; parameters: BoundParameters; edits: TextEdits } {
  const edits = new TextEdits(statement.text);
  const left = placeTravels(edits, statement, travels, session);
  if (left.length === statement.parameters.length) return { sql: edits.apply(), parameters: values, edits };
  // Positions without gaps are all that DuckDB takes, so what is left of them gets names.
  const parameters = new Map<string, SqlParam>();
  for (const { name, start, end } of left) {
    edits.replace(start, end, `$p${name}`);
    parameters.set(`p${name}`, values.get(name)!);
  }
  return { sql: edits.apply(), parameters, edits };
}

/** The query of the statement with its parameters as literals; undefined if one of them has no literal. */
export function rewriteQuery(
  statement: Statement,
  values: BoundParameters,
  travels: readonly number[],
  session: Databases,
): string | undefined {
  const { text, query } = statement;
  const edits = new TextEdits(text);
  for (const { name, start, end } of placeTravels(edits, statement, travels, session)) {
    const literal = literalOf(values.get(name)!);
    if (literal === undefined) return undefined;
    edits.replace(start, end, literal);
  }
  edits.replace(0, query.start, "");
  edits.replace(query.end, text.length, "");
  return edits.apply();
}

/** Where a session shows what the n-th call of `eider.changes` gives: no namespace of a user's is called so. */
export function changesNamespace(call: number): string {
  return `_eider_changes_${call}`;
}

/** Puts databases in place of `AT (…)`, and tables in place of calls. Returns the parameters outside of these. */
function placeTravels(
  edits: TextEdits,
  { timeTravels, changesCalls, parameters }: Statement,
  travels: readonly number[],
  session: Databases,
): readonly Parameter[] {
  timeTravels.forEach((travel, i) => {
    const database = session.databases.get(travels[i]!)!;
    const schema = travel.path.length === 1 ? "main." : "";
    edits.replace(travel.pathStart, travel.pathStart, `${quoteName(database)}.${schema}`);
    edits.replace(travel.start, travel.end, "");
  });
  changesCalls.forEach(({ start, end }, i) => {
    edits.replace(start, end, `${quoteName(session.database)}.${changesNamespace(i)}.changes`);
  });
  const placed = [...timeTravels, ...changesCalls];
  return parameters.filter((p) => !placed.some((t) => p.start >= t.start && p.start < t.end));
}
