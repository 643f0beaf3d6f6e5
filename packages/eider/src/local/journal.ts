/**
 * What a local lake keeps of its catalog in its store, so that it can be rebuilt without it: its entries, in pages
 * `_eider/journal/<first>-<last>-<sha256>`, and now and then a checkpoint, which makes the pages before it unnecessary. All of
 * it comes after commits, beside whatever comes next: it may be late or fail, and undoes nothing.
 */

import { createHash } from "node:crypto";
import type { Draft, JournalPage, SqliteCatalog } from "@eider/catalog";
import { CorruptionError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import type { Logger } from "../options.js";
import { readObject } from "../read-object.js";
import {
  CHECKPOINT_LIMITS,
  type CheckpointLimits,
  coveredSnapshot,
  type IndexCopies,
  listCheckpoints,
  putCheckpoint,
} from "../shared/checkpoints.js";

const PREFIX = "_eider/journal/";
/** Milliseconds from one page to the next: so little is lost with the catalog, and writing costs appends next to nothing. */
const INTERVAL_MS = 1000;
/** Operations that take something away for good: what was kept of the lake before them has to go too. */
const FORGETTING: ReadonlySet<string> = new Set(["purge", "erase"]);
/** Bytes of entries in a page, unless one alone has more. */
const PAGE_BYTES = 1024 * 1024;

export interface JournalOptions {
  readonly store: ObjectStore;
  readonly catalog: SqliteCatalog;
  readonly copies: Pick<IndexCopies, "write">;
  readonly logger: Logger;
  readonly limits?: Pick<CheckpointLimits, "isDue">;
}

/** A page as an object. */
export interface StoredPage {
  readonly key: string;
  readonly first: number;
  readonly last: number;
  readonly sha256: string;
}

export class Journal {
  readonly #options: JournalOptions;
  /** The newest checkpoint, once it was looked for. */
  #checkpoint: { readonly snapshot: number; readonly bytes: number } | undefined;
  /** Whether what a catalog that was replaced has left was looked for. */
  #cleared = false;
  #timer: NodeJS.Timeout | undefined;
  #wanted = false;
  #forgets = false;
  #writing: Promise<void> | undefined;
  #wroteAt = Number.NEGATIVE_INFINITY;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** There was a commit. */
  note({ operations }: Pick<Draft, "operations">): void {
    this.#forgets ||= operations.some(({ op }) => FORGETTING.has(op));
    this.#want();
  }

  #want(): void {
    this.#wanted = true;
    if (this.#timer || this.#writing) return;
    const wait = Math.max(0, this.#wroteAt + INTERVAL_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#write();
    }, wait).unref();
  }

  /**
   * Something was to be forgotten, by this call or by one that did not end: resolves once nothing in the store has it any more. A
   * failure is the caller's, and is tried again with the next commit.
   */
  async forget(): Promise<void> {
    this.#forgets = true;
    while (this.#writing) await this.#writing;
    if (!this.#forgets) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#write();
  }

  /** Writes what is left. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing;
    if (this.#wanted) void this.#write();
    await this.#writing;
    clearTimeout(this.#timer);
  }

  #write(): Promise<void> {
    this.#wanted = false;
    const published = this.#publish();
    this.#writing = published
      .catch((error: unknown) => {
        // The next commit tries again.
        this.#options.logger.warn?.("entries could not be written into the store yet", { error });
      })
      .finally(() => {
        this.#writing = undefined;
        this.#wroteAt = performance.now();
        if (this.#wanted) this.#want();
      });
    return published;
  }

  async #publish(): Promise<void> {
    const { store, catalog } = this.#options;
    const foreign = this.#cleared ? new Set<string>() : await this.#findForeign();
    // A lake that is older than its journal begins with a checkpoint, not with all that it ever was.
    if ((await catalog.journaled()) === 0 && (await this.#isCheckpointDue())) {
      await catalog.setJournaled(await this.#putCheckpoint());
    }
    for (let page = await this.#nextPage(); page; page = await this.#nextPage()) {
      // Not conditional: what has this name has this content.
      await store.put(pageKey(page), page.bytes);
      foreign.delete(pageKey(page));
      await catalog.setJournaled(page.last);
    }
    if (foreign.size > 0) await store.delete([...foreign]);
    this.#cleared = true;
    if (this.#forgets) return this.#startOver();
    if (!(await this.#isCheckpointDue())) return;
    await this.#putCheckpoint();
    // Two checkpoints are kept, and what comes after the older one.
    const covered = await coveredSnapshot(store);
    const old = (await listPages(store)).filter(({ last }) => last <= covered);
    if (old.length > 0) await store.delete(old.map(({ key }) => key));
  }

  /** Entries of long ago may have lost rows that expired since: a checkpoint takes their place. */
  async #nextPage(): Promise<JournalPage | undefined> {
    const { catalog } = this.#options;
    try {
      return await catalog.journalPage(PAGE_BYTES);
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      await catalog.setJournaled(await this.#putCheckpoint());
      return undefined;
    }
  }

  /** One checkpoint, and nothing that is older. */
  async #startOver(): Promise<void> {
    const { store } = this.#options;
    this.#forgets = false;
    try {
      const snapshot = await this.#putCheckpoint();
      const [newest, ...older] = await listCheckpoints(store);
      const pages = (await listPages(store)).filter(({ last }) => last <= snapshot);
      if (newest) await store.delete([...older, ...pages].map(({ key }) => key));
    } catch (error) {
      this.#forgets = true;
      throw error;
    }
  }

  /**
   * What is beyond the catalog's own mark: of another process that is about to say so, and then written again; or of a catalog
   * that another one was put in the place of, from a backup, and whose last commits are no more.
   */
  async #findForeign(): Promise<Set<string>> {
    const { store, catalog } = this.#options;
    const journaled = await catalog.journaled();
    const pages = (await listPages(store)).filter(({ last }) => last > journaled);
    const checkpoints = await listCheckpoints(store);
    const { snapshot: head } = await catalog.head(); // after those lists: what they have of ours is committed
    return new Set([...pages, ...checkpoints.filter(({ snapshot }) => snapshot > head)].map(({ key }) => key));
  }

  async #putCheckpoint(): Promise<number> {
    const { store, copies } = this.#options;
    await using copy = await copies.write();
    this.#checkpoint = await putCheckpoint(store, copy);
    return copy.snapshot;
  }

  async #isCheckpointDue(): Promise<boolean> {
    const { store, catalog, limits = CHECKPOINT_LIMITS } = this.#options;
    const due = async (): Promise<boolean> => {
      const { snapshot, bytes } = this.#checkpoint!;
      return limits.isDue({ ...(await catalog.replayAfter(snapshot)), checkpointBytes: bytes });
    };
    this.#checkpoint ??= { snapshot: 0, bytes: 0 };
    if (!(await due())) return false;
    // Not yet looked for, or another process was first.
    const [newest] = await listCheckpoints(store);
    if (newest && newest.snapshot > this.#checkpoint.snapshot) this.#checkpoint = newest;
    return due();
  }
}

/** By their first entry. Two processes may have written the same entries in different pages. */
export async function listPages(store: ObjectStore): Promise<StoredPage[]> {
  const pages: StoredPage[] = [];
  for await (const { key } of store.list(PREFIX)) {
    const match = /^(\d{20})-(\d{20})-([0-9a-f]{64})$/.exec(key.slice(PREFIX.length));
    if (match) pages.push({ key, first: Number(match[1]), last: Number(match[2]), sha256: match[3]! });
  }
  return pages;
}

/** @throws CorruptionError `bad_journal` */
export async function readPage(store: ObjectStore, { key, sha256 }: StoredPage): Promise<Uint8Array> {
  const { bytes } = await readObject(store, key);
  if (createHash("sha256").update(bytes).digest("hex") !== sha256) {
    throw new CorruptionError("bad_journal", `${key} is damaged`, { subject: key });
  }
  return bytes;
}

function pageKey({ first, last, bytes }: JournalPage): string {
  const digits = (n: number): string => String(n).padStart(20, "0");
  return `${PREFIX}${digits(first)}-${digits(last)}-${createHash("sha256").update(bytes).digest("hex")}`;
}
