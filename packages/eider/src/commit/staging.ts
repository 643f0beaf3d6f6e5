/** The announcement that files will be staged: made when the first of them is to be, so that hot batches need none. */

import type { Catalog, Draft, Intent } from "@eider/catalog";

export class Staging {
  readonly #catalog: Pick<Catalog, "begin" | "abandon">;
  #intent: Intent | undefined;

  constructor(catalog: Pick<Catalog, "begin" | "abandon">) {
    this.#catalog = catalog;
  }

  /** What a draft says of it: the commit ends the intent, if there is one. */
  get draft(): Pick<Draft, "intent"> {
    return this.#intent ? { intent: this.#intent.id } : {};
  }

  /** Snapshot when staging began, which is now if it has not begun: the base of every file staged from here on. */
  async base(): Promise<number> {
    this.#intent ??= await this.#catalog.begin();
    return this.#intent.base;
  }

  /** Ends it without a commit: its files were deleted or never put. */
  async abandon(): Promise<void> {
    const intent = this.#intent;
    this.#intent = undefined;
    if (intent) await this.#catalog.abandon(intent.id);
  }
}
