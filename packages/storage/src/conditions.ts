import { InvalidInputError, StoreError } from "@eider/core";
import type { PutOptions } from "./store.js";

/** @throws InvalidInputError (`bad_condition`) for a put that is to create only and to replace only */
export function assertOneCondition(options: PutOptions): void {
  if (options.ifAbsent && options.ifMatch !== undefined) {
    throw new InvalidInputError(
      "bad_condition",
      "A put with ifAbsent creates and one with ifMatch replaces: give one of them.",
    );
  }
  if (options.ifMatch === "") {
    throw new InvalidInputError("bad_condition", "ifMatch is empty: give the etag that head, get, list or put gave.");
  }
}

/** The object is not the one that `ifMatch` names. */
export function etagMismatch(key: string, cause?: unknown): StoreError {
  return new StoreError(
    "etag_mismatch",
    `${key} was replaced or deleted since its etag was taken, and stays as it is: read it again.`,
    { subject: key, cause },
  );
}

/** @param url of the store that cannot compare and replace in one step */
export function noConditionalReplace(key: string, url: string): StoreError {
  return new StoreError(
    "no_conditional_replace",
    `${url} cannot replace an object only if it is unchanged: put ${key} without ifMatch, or use another store.`,
    { subject: key },
  );
}
