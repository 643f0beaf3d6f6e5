/**
 * The commits of a local lake. Those that come at the same time are in one transaction, so that they share its fsync;
 * appends among them that follow each other share an entry too, as on a shared lake.
 */

import { CatalogError } from "@eider/core";
import type { CommitResult, Draft, Operation } from "./catalog.js";
import { GroupQueue, type Outcome } from "./group-queue.js";
import { type Author, planGroup, type Refusal, sharesEntry, writeEntry } from "./sqlite-commit.js";
import { CommitUnknown } from "./sqlite-connection.js";
import { dataVersion, type SqliteDriver } from "./sqlite-driver.js";
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
  /** Told of each entry in the transaction that commits it. */
  readonly onEntry: (operations: readonly Operation[]) => void;
}

interface Member {
  readonly draft: Draft;
  /** Of the entry that it is to become, or to begin, however often that is tried. */
  readonly id: string;
}

type Outcomes = readonly Outcome<CommitResult>[];

/** One try of a transaction. */
interface Attempt {
  readonly outcomes: Outcomes;
  /** Id of the first entry in it; undefined if it has none. */
  readonly first: string | undefined;
}

export class LocalCommits {
  readonly #options: LocalCommitsOptions;
  readonly #queue: GroupQueue<Member, CommitResult>;
  /** What the last transaction left, which holds until another connection writes. */
  #left: { readonly driver: SqliteDriver; readonly version: number; readonly state: SqliteState } | undefined;

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

  /** Something else on this connection writes what commits depend on. */
  forget(): void {
    this.#left = undefined;
  }

  async #commit(members: readonly Member[]): Promise<Outcomes> {
    const attempts: Attempt[] = [];
    let failure: unknown;
    for (let tries = 0; tries < COMMIT_TRIES; tries++) {
      try {
        // A COMMIT that failed may have taken effect. If it has not, it still might when the log is recovered after a
        // crash, until the same place in the log is written again: so the same is tried again, under the same ids.
        return await this.#options.write((driver) => {
          const settled = tookEffect(driver, attempts);
          if (settled) return settled;
          const attempt = this.#transact(driver, members);
          attempts.push(attempt);
          return attempt.outcomes;
        });
      } catch (error) {
        this.forget();
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
    const outcomes: Outcome<CommitResult>[] = [];
    for (const member of members) {
      const [outcome] = await this.#commit([member]).catch((failure: unknown): Outcomes => [{ failure }]);
      outcomes.push(outcome!);
    }
    return outcomes;
  }

  /** The commit point of all members that may be committed is the end of the transaction that this runs in. */
  #transact(driver: SqliteDriver, members: readonly Member[]): Attempt {
    const { lakeId, author, onEntry } = this.#options;
    const version = dataVersion(driver);
    const state = this.#stateOf(driver, version);
    state.checkMode(lakeId, "local");
    let first: string | undefined;
    const outcomes = runsOf(members).flatMap((run): Outcomes => {
      const drafts = run.map(({ draft }) => draft);
      const { entry, outcomes } = planGroup(state, drafts, author(run[0]!.id), (draft) => endIntent(driver, draft));
      if (entry) {
        writeEntry(driver, state, entry);
        onEntry(entry.operations);
        first ??= entry.id;
      }
      return outcomes;
    });
    this.#left = { driver, version, state };
    return { outcomes, first };
  }

  /** Nothing is left of it while it is used: a transaction that fails leaves what nobody knows. */
  #stateOf(driver: SqliteDriver, version: number): SqliteState {
    const left = this.#left;
    this.#left = undefined;
    const holds = left?.driver === driver && left.version === version && !left.state.isLarge;
    return holds ? left.state : new SqliteState(driver);
  }
}

/** Members that become one entry each, in their order. */
function runsOf(members: readonly Member[]): Member[][] {
  const runs: Member[][] = [];
  let open = false;
  for (const member of members) {
    const joins = sharesEntry(member.draft);
    if (joins && open) runs.at(-1)!.push(member);
    else runs.push([member]);
    open = joins;
  }
  return runs;
}

/** What an earlier try came to, if its COMMIT took effect although it failed. */
function tookEffect(driver: SqliteDriver, attempts: readonly Attempt[]): Outcomes | undefined {
  return attempts.findLast(({ first }) => first !== undefined && hasEntry(driver, first))?.outcomes;
}

function hasEntry(driver: SqliteDriver, id: string): boolean {
  return driver.get("SELECT n FROM entries WHERE id = ?", id) !== undefined;
}

function endIntent(driver: SqliteDriver, { intent }: Draft): Refusal | undefined {
  if (intent === undefined || driver.run("DELETE FROM intents WHERE id = ?", intent) > 0) return undefined;
  const message = "the staging intent was ended: stage the files again";
  return { answer: { status: "stale", reason: "intent", message } };
}

function isBusy(error: unknown): boolean {
  return error instanceof CatalogError && error.code === "catalog_busy";
}
