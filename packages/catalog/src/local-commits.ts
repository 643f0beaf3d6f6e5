/**
 * The commits of a local lake. Each is an entry of its own, with its own snapshot; those that come at the same time are in
 * one transaction, so that they share its fsync.
 */

import { CatalogError } from "@eider/core";
import type { CommitResult, Draft } from "./catalog.js";
import { GroupQueue, type Outcome } from "./group-queue.js";
import { type Author, nextEntry, receiptsOf, receiptsTo, refusal, writeEntry } from "./sqlite-commit.js";
import { CommitUnknown } from "./sqlite-connection.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { SqliteState } from "./sqlite-state.js";

/** Tries of one transaction whose COMMIT fails before `commit_unknown`. */
export const COMMIT_TRIES = 4;
/** Most commits in one transaction: it holds up the process, and others that wait for the lock. */
const GROUP_LIMIT = 256;

export interface LocalCommitsOptions {
  readonly lakeId: string;
  /** Runs a write transaction. @throws CommitUnknown */
  readonly write: <T>(body: (driver: SqliteDriver) => T) => Promise<T>;
  readonly author: (id: string) => Author;
  readonly turn: () => Promise<void>;
}

interface Member {
  readonly draft: Draft;
  /** Of the entry that it is to become, however often that is tried. */
  readonly id: string;
}

type Outcomes = Outcome<CommitResult>[];

export class LocalCommits {
  readonly #options: LocalCommitsOptions;
  readonly #queue: GroupQueue<Member, CommitResult>;

  constructor(options: LocalCommitsOptions) {
    this.#options = options;
    this.#queue = new GroupQueue({
      turn: options.turn,
      limit: GROUP_LIMIT,
      commit: (members) => this.#commit(members),
    });
  }

  /** @param id random: the entry's */
  commit(draft: Draft, id: string): Promise<CommitResult> {
    return this.#queue.join({ draft, id });
  }

  idle(): Promise<void> {
    return this.#queue.idle();
  }

  async #commit(members: readonly Member[]): Promise<Outcomes> {
    let failure: unknown;
    for (let tries = 0; tries < COMMIT_TRIES; tries++) {
      try {
        // A COMMIT that failed may have taken effect. If it has not, it still might when the log is recovered after a
        // crash, until the same place in the log is written again: so the same entries are tried again, under their ids.
        return await this.#options.write((driver) => this.#transact(driver, members, tries > 0));
      } catch (error) {
        if (error instanceof CommitUnknown) {
          failure = error.cause;
          continue;
        }
        if (tries > 0 && error instanceof CatalogError) {
          failure = error;
          break;
        }
        // Nothing was committed, and the reason may lie with one of them: the others must not suffer for it.
        if (tries === 0 && members.length > 1 && !isBusy(error)) return this.#oneByOne(members);
        throw error;
      }
    }
    throw new CatalogError(
      "commit_unknown",
      "the disk failed while committing, and whether it took effect cannot be told: append again with the same batch id, " +
        "which settles it",
      { cause: failure, retryable: true },
    );
  }

  async #oneByOne(members: readonly Member[]): Promise<Outcomes> {
    const outcomes: Outcomes = [];
    for (const member of members) {
      const [outcome] = await this.#commit([member]).catch((failure: unknown): Outcomes => [{ failure }]);
      outcomes.push(outcome!);
    }
    return outcomes;
  }

  /** The commit point of all members that may be committed is the end of the transaction that this runs in. */
  #transact(driver: SqliteDriver, members: readonly Member[], again: boolean): Outcomes {
    const state = new SqliteState(driver);
    state.checkMode(this.#options.lakeId, "local");
    return members.map((member) => this.#write(driver, state, member, again));
  }

  /** A member is checked on the state with those before it applied. */
  #write(driver: SqliteDriver, state: SqliteState, { draft, id }: Member, again: boolean): Outcome<CommitResult> {
    const settled = again ? findEntry(driver, id) : undefined;
    if (settled !== undefined) {
      return { answer: { status: "committed", snapshot: settled, receipts: receiptsOf(state, draft) } };
    }
    const refused = refusal(state, draft);
    if (refused) return refused;
    if (draft.intent !== undefined && driver.run("DELETE FROM intents WHERE id = ?", draft.intent) === 0) {
      const message = "the staging intent was ended: stage the files again";
      return { answer: { status: "stale", reason: "intent", message } };
    }
    const entry = nextEntry(state, [draft], this.#options.author(id));
    const receipts = receiptsTo(state, draft, entry);
    writeEntry(driver, state, entry);
    return { answer: { status: "committed", snapshot: entry.n, receipts } };
  }
}

/** The number of the entry with this id, if it was committed. */
function findEntry(driver: SqliteDriver, id: string): number | undefined {
  return driver.get<{ n: number }>("SELECT n FROM entries WHERE id = ?", id)?.n;
}

function isBusy(error: unknown): boolean {
  return error instanceof CatalogError && error.code === "catalog_busy";
}
