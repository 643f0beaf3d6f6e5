/**
 * A stub: what is left of an entry that a checkpoint made unnecessary. It lies under the entry's number, which so stays
 * taken for ever, and tells whose it was and what it acknowledged. Form: as an entry's, with `stub` as the header's
 * first key and no blobs.
 */

import { CatalogError, CorruptionError } from "@eider/core";
import { decodeEntry, type Entry, type EntryFacts, frame, readFacts } from "./entry.js";
import { JsonReader } from "./json-reader.js";

const FORMAT = 1;
/** Begins the header of every stub, and of no entry. */
const MARK = Buffer.from('{"stub":');

export interface Stub extends EntryFacts {
  readonly receipts: readonly StubReceipt[];
}

export interface StubReceipt {
  /** Table id. */
  readonly table: string;
  readonly batch: string;
  readonly hash: string;
  readonly rows: number;
}

export function stubOf({ meta: _meta, members: _members, operations, ...facts }: Entry): Stub {
  const receipts = operations
    .filter((operation) => operation.op === "append")
    .map(({ table, batch, hash, rows }): StubReceipt => ({ table, batch, hash, rows }));
  return { ...facts, receipts };
}

export function encodeStub(stub: Stub): Uint8Array {
  return frame({ stub: FORMAT, ...stub });
}

export function isStub(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(4, 4 + MARK.length), MARK) === 0;
}

/**
 * @throws CatalogError `reader_too_old`
 * @throws CorruptionError `bad_entry`
 */
export function decodeStub(bytes: Uint8Array): Stub {
  const fail = (reason: string): never => {
    throw new CorruptionError("bad_entry", `a stub of an entry cannot be read: ${reason}`);
  };
  if (Buffer.from(bytes).readUInt32LE() !== bytes.length - 4) fail("it is cut off");
  const header = JsonReader.parse(bytes.subarray(4), fail);
  if (header.get("stub").count(1) > FORMAT) {
    throw new CatalogError("reader_too_old", "this lake was written by a newer version of Eider: update Eider");
  }
  return {
    ...readFacts(header),
    receipts: header
      .get("receipts")
      .list()
      .map((receipt) => ({
        table: receipt.get("table").text(),
        batch: receipt.get("batch").text(),
        hash: receipt.get("hash").text(),
        rows: receipt.get("rows").count(),
      })),
  };
}

/** Whose entry it is, also where only its stub is left. */
export function entryFacts(bytes: Uint8Array): EntryFacts {
  return isStub(bytes) ? decodeStub(bytes) : decodeEntry(bytes);
}
