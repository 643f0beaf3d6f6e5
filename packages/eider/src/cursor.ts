import { checkLabel, START } from "@eider/catalog";
import { CatalogError } from "@eider/core";
import { assertPlannable } from "./commit/stale.js";
import { checkCursorMove } from "./option-rules.js";
import type { TableHost } from "./table.js";

/**
 * The place of a consumer in a feed, kept in the lake: from `lake.cursor(name)`. It moves only from where its consumer
 * believes it to be, so that two consumers under one name are found out instead of sharing the feed by accident.
 */
export class Cursor {
  readonly name: string;
  readonly #host: TableHost;

  /** Use `lake.cursor(…)`. */
  constructor(host: TableHost, name: string) {
    checkLabel(name, "cursor");
    this.#host = host;
    this.name = name;
  }

  /** What to pass to `changes({ after })`: `"0"`, the beginning, for a cursor that was never moved. */
  position(): Promise<string> {
    return this.#host.run(async () => {
      await this.#host.open.catalog.refresh();
      return this.#position();
    });
  }

  /**
   * Moves it by a commit of its own: right for what happens outside of the lake. What is appended to the lake moves it in
   * the same commit, by `append(…, { cursor })`. Moving it to where it is already is no error.
   * @throws CatalogError `cursor_moved` if it is at neither of the two
   */
  async advance(move: { readonly from: string; readonly to: string }): Promise<void> {
    checkCursorMove("cursor.advance", { ...move, name: this.name });
    await this.#host.run(async () => {
      this.#host.assertWritable();
      const { from, to } = move;
      const result = await this.#host.open.catalog.commit({
        operations: [{ op: "cursor", name: this.name, from, to }],
      });
      if (result.status !== "stale" || (await this.#position()) === to) return;
      assertPlannable(result);
    });
  }

  /** Forgets it: nothing is kept for it any more, and the name begins at `"0"` again. */
  end(): Promise<void> {
    return this.#host.run(async () => {
      this.#host.assertWritable();
      const { catalog } = this.#host.open;
      await catalog.refresh();
      const found = await catalog.cursor(this.name);
      if (!found) return;
      const operation = { op: "cursor", name: this.name, from: found.position } as const;
      const result = await catalog.commit({ operations: [operation] });
      if (result.status === "stale" && (await catalog.cursor(this.name))) {
        throw new CatalogError("cursor_moved", `the cursor ${JSON.stringify(this.name)} is in use: it moved just now`);
      }
    });
  }

  async #position(): Promise<string> {
    return (await this.#host.open.catalog.cursor(this.name))?.position ?? START;
  }
}
