/** Going back: one commit after which tables are what they were at an earlier snapshot. */

import { type Catalog, type Operation, START, type TableInfo, type ViewInfo } from "@eider/catalog";
import { CatalogError, NotFoundError, nameKey, sameSchema } from "@eider/core";
import { snapshotOf } from "@eider/query";

/** A rollback plans again when another writer was faster; so often, and then it says so. */
const MAX_ATTEMPTS = 20;

/**
 * Rolls a table back, or all of them. What is as it was is left alone: then the snapshot is the head.
 * @throws NotFoundError, CatalogError `rollback_dropped`, `too_contended`
 */
export async function rollback(
  catalog: Catalog,
  at: number | string | Date,
  name?: string,
): Promise<{ readonly snapshot: number }> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    await catalog.refresh();
    const { snapshot: head } = await catalog.head();
    const to = await snapshotOf(catalog, at);
    const span = { to, head };
    const operations =
      name === undefined
        ? await planLake(catalog, span)
        : await planTable(catalog, span, await find(catalog, name, span));
    if (operations.length === 0) return { snapshot: head };
    // A table is taken back to what it was whatever came since; but which tables there are, and which of them have changed,
    // is true of this head alone.
    const result = await catalog.commit({ operations, ...(name === undefined && { expectSnapshot: head }) });
    if (result.status === "committed") return { snapshot: result.snapshot };
  }
  throw new CatalogError("too_contended", "tables changed all the time during this rollback: try again", {
    retryable: true,
  });
}

/** From which snapshot to which: all is planned as of `head`, so that it is true of one moment. */
interface Span {
  readonly to: number;
  readonly head: number;
}

interface BeforeAndNow {
  readonly before: TableInfo;
  readonly now: TableInfo;
}

async function find(catalog: Catalog, name: string, { to, head }: Span): Promise<BeforeAndNow> {
  const now = await catalog.table(name, head);
  if (!now) throw new NotFoundError("table_not_found", `there is no table ${name}`, { subject: name });
  const before = (await catalog.tables(to)).find(({ id }) => id === now.id);
  if (before) return { before, now };
  throw new NotFoundError("table_not_found", `there was no such table ${name} at snapshot ${to}`, { subject: name });
}

async function planLake(catalog: Catalog, span: Span): Promise<Operation[]> {
  const { to, head } = span;
  const then = new Map((await catalog.tables(to)).map((table) => [table.id, table]));
  const now = await catalog.tables(head);
  const dropped = [...then.values()].find(({ id }) => !now.some((table) => table.id === id));
  if (dropped) {
    throw new CatalogError(
      "rollback_dropped",
      `table ${dropped.name} was dropped since snapshot ${to}, and a dropped table does not come back: ` +
        "roll the other tables back one by one",
      { subject: dropped.name },
    );
  }
  const operations: Operation[] = [];
  for (const table of now) {
    const before = then.get(table.id);
    if (before) operations.push(...(await planTable(catalog, span, { before, now: table })));
    else operations.push({ op: "drop", table: table.id });
  }
  return [...operations, ...planViews(await catalog.views(to), await catalog.views(head))];
}

/** Unlike tables, views that were dropped come back: their texts are all there is to them. */
function planViews(then: readonly ViewInfo[], now: readonly ViewInfo[]): Operation[] {
  const rest = new Map(now.map((view) => [nameKey(view.name), view]));
  const back = then.flatMap(({ name, sql }): Operation[] => {
    const view = rest.get(nameKey(name));
    rest.delete(nameKey(name));
    if (view?.sql === sql) return [];
    return [{ op: "view", name, sql, ...(view && { from: view.createdIn }) }];
  });
  const ends = [...rest.values()].map(({ name, createdIn }): Operation => ({ op: "view", name, from: createdIn }));
  return [...ends, ...back];
}

async function planTable(catalog: Catalog, { to, head }: Span, { before, now }: BeforeAndNow): Promise<Operation[]> {
  const { id, lastFieldId, schemaVersion } = now;
  const sameColumns = sameSchema(before.schema, now.schema);
  if (sameColumns && !(await hasChanged(catalog, id, { to, head }))) return [];
  const back: Operation = { op: "rollback", table: id, to };
  if (sameColumns) return [back];
  // Ids of fields that go now are not given out again: what was written with them may come back.
  return [{ op: "schema", table: id, version: schemaVersion + 1, schema: before.schema, lastFieldId }, back];
}

async function hasChanged(catalog: Catalog, table: string, { to, head }: Span): Promise<boolean> {
  try {
    return (await catalog.changes(table, to === 0 ? START : String(to), { until: head, limit: 1 })).length > 0;
  } catch (error) {
    // A tag keeps its snapshot, not what came after it: whether anything did is not told any more.
    if (error instanceof CatalogError && error.code === "cursor_expired") return true;
    throw error;
  }
}
