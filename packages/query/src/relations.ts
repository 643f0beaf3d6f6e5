/** What a lake has at a snapshot, and what of it a statement sees. */

import type { Catalog, TableInfo, ViewInfo } from "@eider/catalog";
import { nameKey, QueryError } from "@eider/core";
import { remember } from "./remember.js";
import { refusalOf } from "./scope/guard.js";
import { snapshotOf } from "./snapshot.js";
import { charOffset } from "./utf8-offset.js";
import { expandViews, type Relations, readViewText, type Shown, type ViewText } from "./views.js";

const CACHED_LISTS = 8;
const CACHED_TEXTS = 256;

export class LakeRelations {
  readonly #catalog: Catalog;
  readonly #parse: (sql: string) => Promise<string>;
  readonly #lists = new Map<string, Promise<Relations>>();
  /** By text. */
  readonly #texts = new Map<string, Promise<ViewText>>();

  /** @param parse DuckDB's parse of a SELECT, serialized */
  constructor(catalog: Catalog, parse: (sql: string) => Promise<string>) {
    this.#catalog = catalog;
    this.#parse = parse;
  }

  /** @throws NotFoundError `snapshot_expired` */
  list(snapshot: number): Promise<Relations> {
    return remember(this.#lists, String(snapshot), CACHED_LISTS, async () => {
      if (snapshot === 0) return { tables: [], views: [] };
      const [tables, views] = await Promise.all([this.#catalog.tables(snapshot), this.#catalog.views(snapshot)]);
      return { tables, views };
    });
  }

  /** Of a snapshot that may have ended. */
  async tablesThen(snapshot: number): Promise<readonly TableInfo[]> {
    const { tables } = await remember(this.#lists, `${snapshot} expired`, CACHED_LISTS, async () => ({
      tables: await this.#catalog.tables(snapshot, { expired: true }),
      views: [],
    }));
    return tables;
  }

  /** The tables and views that are wanted, and those that the views read. */
  expand(all: Relations, wants: (name: string) => boolean): Promise<Shown> {
    return expandViews(all, wants, ({ sql }) => this.#text(sql));
  }

  #text(sql: string): Promise<ViewText> {
    return remember(this.#texts, sql, CACHED_TEXTS, async () => readViewText(sql, await this.#parse(sql)));
  }

  /** `bad_view`: what is wrong with a SELECT as the text of a view. */
  async viewProblem(name: string, sql: string): Promise<QueryError | undefined> {
    const { tables, views } = await this.list(await snapshotOf(this.#catalog, undefined));
    const serialized = await this.#parse(sql);
    const refusal = refusalOf(serialized, namesOf({ tables, views }));
    if (refusal) {
      const position = refusal.position === undefined ? undefined : charOffset(sql, refusal.position);
      return new QueryError(
        "bad_view",
        `a view reads tables and views of the lake, and nothing else: ${refusal.reason}`,
        {
          subject: name,
          ...(position !== undefined && { position }),
        },
      );
    }
    const own: ViewInfo = { name, sql, createdIn: 0 };
    const others = views.filter((view) => nameKey(view.name) !== nameKey(name));
    const { broken } = await this.expand({ tables, views: [...others, own] }, (one) => one === name);
    const problem = broken.get(nameKey(name));
    return problem === undefined ? undefined : new QueryError("bad_view", problem, { subject: name });
  }
}

/** Of tables and views. */
export function namesOf({ tables, views }: Relations): string[] {
  return [...tables, ...views].map(({ name }) => name);
}
