/**
 * Files that are made of parts of an object, for readers who need no more of it. What an excerpt holds is up to who makes
 * it; here it has a name, a size and a hash, and is kept and evicted like any other file of the cache.
 */

/** What is wanted in place of a whole object. */
export interface Excerpt {
  /** Whether an excerpt of this name will do. */
  suits(name: string): boolean;
  /**
   * What is to be made where none will do.
   * @param there those of the object that are in the cache; they stay until the plan is carried out
   */
  plan(there: readonly ExcerptFile[], signal: AbortSignal | undefined): Promise<ExcerptPlan | WholePlan>;
}

export interface ExcerptFile {
  readonly name: string;
  /** Absolute. */
  readonly path: string;
}

/** It had better be the whole object. */
export interface WholePlan {
  readonly kind: "whole";
  /** That were read from the store to find out. */
  readonly fetchedBytes: number;
}

export interface ExcerptPlan {
  readonly kind: "excerpt";
  /** Letters, digits, `-` and `_`, at most 90 of them: says all that `suits` has to know. */
  readonly name: string;
  readonly bytes: number;
  /** Names of excerpts that nobody needs beside it. */
  readonly replaces: readonly string[];
  /**
   * Writes all the bytes, in any order. Returns how many were read from the store, those for the plan included.
   * @param put writes at a place of the file
   */
  write(put: (bytes: Uint8Array, at: number) => Promise<void>, signal: AbortSignal): Promise<number>;
}
