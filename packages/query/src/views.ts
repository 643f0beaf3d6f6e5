/** Views of the lake: what their texts read, in which order they can be made, and why one cannot. */

import { parseTableName, type TableInfo, type ViewInfo } from "@eider/catalog";
import { nameKey } from "@eider/core";
import { refusalOf } from "./scope/guard.js";
import type { TableView } from "./session.js";
import { parseStatement } from "./statement.js";
import { tableReferences } from "./table-references.js";
import { charOffset } from "./utf8-offset.js";

/** Views over views over … so deep. */
const MAX_DEPTH = 16;

/** What a view's text says. */
export interface ViewText {
  readonly sql: string;
  /** See `Statement.names`. */
  readonly names: ReadonlySet<string>;
  readonly comparesNulls: boolean;
  /** Why it is not to be shown. Whoever wrote the entry may not have judged it. */
  readonly refusal: string | undefined;
  /** `position` in characters. */
  readonly reads: readonly { readonly path: readonly string[]; readonly position: number }[];
}

/** @param serialized DuckDB's parse of the text */
export function readViewText(sql: string, serialized: string): ViewText {
  const reads = tableReferences(serialized).map(({ path, position }) => ({
    path,
    position: charOffset(sql, position) ?? 0,
  }));
  // Names that the lake has not are looked at when they are.
  const refusal = refusalOf(
    serialized,
    reads.map(({ path }) => path.join(".")),
  );
  if (refusal) return { sql, refusal: refusal.reason, names: new Set(), comparesNulls: false, reads };
  const { names, comparesNulls } = parseStatement(sql);
  return { sql, refusal: undefined, names, comparesNulls, reads };
}

/** What a statement may see of a lake: all of its tables and views at a snapshot. */
export interface Relations {
  readonly tables: readonly TableInfo[];
  readonly views: readonly ViewInfo[];
}

/** Of these, what it does see. */
export interface Shown {
  readonly tables: readonly TableInfo[];
  /** Each behind those that it reads. */
  readonly views: readonly ShownView[];
  /** By `nameKey` of a view that cannot be shown: why. */
  readonly broken: ReadonlyMap<string, string>;
}

export interface ShownView {
  readonly view: ViewInfo;
  readonly text: ViewText;
}

/**
 * The tables and views that are wanted, and those that the views read.
 * @param textOf reads a view's text
 */
export async function expandViews(
  all: Relations,
  wants: (name: string) => boolean,
  textOf: (view: ViewInfo) => Promise<ViewText>,
): Promise<Shown> {
  const views = new Map(all.views.map((view) => [pathKey(sqlPath(view.name)), view]));
  const tables = new Map(all.tables.map((table) => [pathKey(sqlPath(table.name)), table]));
  const seen = new Set(all.tables.filter(({ name }) => wants(name)));
  const shown = new Map<ViewInfo, ShownView>();
  const broken = new Map<string, string>();
  /** Returns why it cannot be shown. */
  const add = async (view: ViewInfo, above: readonly ViewInfo[]): Promise<string | undefined> => {
    if (shown.has(view)) return undefined;
    if (above.includes(view)) return `the view ${quoted(view.name)} reads itself`;
    if (above.length >= MAX_DEPTH) return `more than ${MAX_DEPTH} views read each other`;
    const known = broken.get(nameKey(view.name));
    if (known !== undefined) return known;
    const text = await textOf(view);
    if (text.refusal !== undefined) {
      broken.set(nameKey(view.name), text.refusal);
      return text.refusal;
    }
    const read: TableInfo[] = [];
    for (const { path } of text.reads) {
      const key = pathKey(path);
      const [table, below] = [tables.get(key), views.get(key)];
      const problem = below
        ? await add(below, [...above, view])
        : table
          ? undefined
          : `there is no table ${quoted(path.join("."))}, which the view ${quoted(view.name)} reads`;
      if (problem !== undefined) {
        broken.set(nameKey(view.name), problem);
        return problem;
      }
      if (table) read.push(table);
    }
    for (const table of read) seen.add(table);
    shown.set(view, { view, text });
    return undefined;
  };
  for (const view of all.views) if (wants(view.name)) await add(view, []);
  // In the order of the list, so that equal ones have equal keys.
  return { tables: all.tables.filter((table) => seen.has(table)), views: [...shown.values()], broken };
}

/** A view as a session shows it. */
export function viewOf({ view, text }: ShownView): TableView {
  const references = text.reads.map(({ path, position }) => ({ position, bare: path.length === 1 }));
  return { name: view.name, sql: text.sql, references };
}

/** A name of the lake as a text names it. */
function sqlPath(name: string): string[] {
  const { namespace, name: own } = parseTableName(name);
  return namespace === undefined ? [own] : [namespace, own];
}

function pathKey(path: readonly string[]): string {
  return JSON.stringify(path.map(nameKey));
}

function quoted(name: string): string {
  return JSON.stringify(name);
}
