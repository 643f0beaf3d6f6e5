/** A local catalog's entries as they are kept outside of it: whole, with the rows of their hot batches. */

import { CorruptionError } from "@eider/core";
import type { SqliteDriver } from "./sqlite-driver.js";
import { corrupt, readJson } from "./sqlite-json.js";

/** Entries that follow each other. */
export interface JournalPage {
  readonly first: number;
  readonly last: number;
  /** Each entry behind its length in bytes (4 bytes, little-endian). */
  readonly bytes: Uint8Array;
}

interface EntryRow {
  readonly n: number;
  readonly header: Uint8Array;
}

/** The entries that were not said to be journaled, up to so many bytes and at least one; undefined if there are none. */
export function readJournal(driver: SqliteDriver, maxBytes: number): JournalPage | undefined {
  const journaled = journaledUpTo(driver);
  const end = driver.get<{ log_end: number }>("SELECT log_end FROM entries WHERE n = ?", journaled)?.log_end ?? 0;
  const page = driver.all<EntryRow>(
    "SELECT n, header FROM entries WHERE n > ? AND (n = ? OR log_end <= ?) ORDER BY n LIMIT 10000",
    journaled,
    journaled + 1,
    end + maxBytes,
  );
  if (page.length === 0) return undefined;
  const bytes = Buffer.concat(page.flatMap(({ n, header }) => framed([header, ...blobsOf(driver, n, header)])));
  return { first: page[0]!.n, last: page.at(-1)!.n, bytes };
}

/** The entries of a page. @throws CorruptionError `bad_entry` */
export function* journalEntries(bytes: Uint8Array): Iterable<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + (at + 4 > bytes.length ? 0 : view.getUint32(at, true));
    if (end > bytes.length) throw new CorruptionError("bad_entry", "a page of the journal is cut off");
    yield bytes.subarray(at + 4, end);
    at = end;
  }
}

export function journaledUpTo(driver: SqliteDriver): number {
  return driver.get<{ journaled: number }>("SELECT journaled FROM meta")?.journaled ?? 0;
}

/** Another process may have said more. */
export function setJournaled(driver: SqliteDriver, n: number): void {
  driver.run("UPDATE meta SET journaled = max(journaled, ?)", n);
}

function framed(parts: readonly Uint8Array[]): Uint8Array[] {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(parts.reduce((sum, part) => sum + part.length, 0));
  return [length, ...parts];
}

/** What follows the header: the rows of its hot batches, in the order of its operations. */
function blobsOf(driver: SqliteDriver, n: number, header: Uint8Array): Uint8Array[] {
  const json = readJson(Buffer.from(header.buffer, header.byteOffset, header.byteLength).toString("utf8", 4));
  if (json.get("blobs").list().length === 0) return [];
  return json
    .get("operations")
    .list()
    .filter((operation) => operation.get("op").text() === "append" && operation.optional("hot"))
    .map((operation) => {
      const row = driver.get<{ data: Uint8Array }>(
        `SELECT h.data FROM hot_batches h JOIN tables t ON t.no = h.table_no
         WHERE t.id = ? AND h.batch = ? AND h.added_in = ?`,
        operation.get("table").text(),
        operation.get("batch").text(),
        n,
      );
      return row?.data ?? corrupt(`the rows of a hot batch of entry ${n} are gone`);
    });
}
