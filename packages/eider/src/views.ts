/** `lake.createView` and `lake.dropView`: SELECTs that have a name in the lake. */

import { type Catalog, parseTableName, type ViewInfo } from "@eider/catalog";
import { AlreadyExistsError, CatalogError, NotFoundError, nameKey } from "@eider/core";
import type { OpenLake } from "./open.js";

export interface CreateViewOptions {
  /** Whether a view of this name is replaced. Default false. */
  readonly orReplace?: boolean;
}

/** Planned again when another writer was faster; so often, and then it says so. */
const MAX_ATTEMPTS = 20;

/** The view as it is then; where it has this text already, nothing is committed. */
export async function createView(
  { catalog, engine }: OpenLake,
  name: string,
  text: string,
  { orReplace = false }: CreateViewOptions,
): Promise<ViewInfo> {
  parseTableName(name);
  await catalog.refresh();
  const sql = await (await engine()).viewText(name, text);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    if (await catalog.table(name)) {
      throw new AlreadyExistsError("table_exists", `there is a table ${name}: give the view another name`, {
        subject: name,
      });
    }
    const before = await findView(catalog, name);
    if (before?.sql === sql) return before;
    if (before && !orReplace) {
      throw new AlreadyExistsError("view_exists", `there is a view ${name} with another text: pass orReplace: true`, {
        subject: name,
      });
    }
    const result = await catalog.commit({
      operations: [{ op: "view", name, sql, ...(before && { from: before.createdIn }) }],
    });
    if (result.status === "committed") return { name, sql, createdIn: result.snapshot };
    await catalog.refresh();
  }
  throw tooContended(name);
}

/** @throws NotFoundError `view_not_found` */
export async function dropView({ catalog }: OpenLake, name: string): Promise<{ readonly snapshot: number }> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    await catalog.refresh();
    const view = await findView(catalog, name);
    if (!view) throw new NotFoundError("view_not_found", `there is no view ${name}`, { subject: name });
    const result = await catalog.commit({ operations: [{ op: "view", name: view.name, from: view.createdIn }] });
    if (result.status === "committed") return { snapshot: result.snapshot };
  }
  throw tooContended(name);
}

async function findView(catalog: Catalog, name: string): Promise<ViewInfo | undefined> {
  return (await catalog.views()).find((view) => nameKey(view.name) === nameKey(name));
}

function tooContended(name: string): CatalogError {
  return new CatalogError("too_contended", `the view ${name} changed all the time: try again`, {
    retryable: true,
    subject: name,
  });
}
