/** What SQLite reports, as errors that say what to do. */

import { CatalogError, CorruptionError, EiderError } from "@eider/core";

/** SQLite's result code, such as `SQLITE_BUSY`; undefined for other errors. */
function sqliteCode(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code?.startsWith("SQLITE_") ? code : undefined;
}

/** Somebody else has a lock: trying again later may work, and nothing was changed. */
export function isBusy(error: unknown): boolean {
  // SQLITE_PROTOCOL: too many processes raced for the index of the log.
  return /^SQLITE_(BUSY|PROTOCOL)/.test(sqliteCode(error) ?? "");
}

/** The file cannot be opened as asked, for want of permission or of a place for the files beside it. */
export function isOpenRefused(error: unknown): boolean {
  const code = sqliteCode(error) ?? "";
  return code.startsWith("SQLITE_CANTOPEN") || code.startsWith("SQLITE_READONLY");
}

/** The disk was full, so the log's last page is not whole and the transaction certainly not in it. */
export function isDiskFull(error: unknown): boolean {
  return sqliteCode(error)?.startsWith("SQLITE_FULL") ?? false;
}

/** Turns an error of SQLite into one of ours; others pass as they are. */
export function toCatalogError(error: unknown, path: string): unknown {
  if (error instanceof EiderError) return error;
  const code = sqliteCode(error);
  if (code === undefined) return error;
  const details = { cause: error, subject: path };
  const fails = (kind: string, message: string, retryable = false): CatalogError =>
    new CatalogError(kind, `the catalog ${path} ${message}`, { ...details, retryable });
  const family = /^SQLITE_[A-Z]+/.exec(code)?.[0];
  switch (family) {
    case "SQLITE_BUSY":
    case "SQLITE_PROTOCOL":
      return fails("catalog_busy", "is locked by another process: try again", true);
    case "SQLITE_NOTADB":
      return fails("not_a_catalog", "is not a SQLite file: check the path");
    case "SQLITE_CORRUPT":
      return new CorruptionError(
        "catalog_corrupt",
        `the catalog ${path} is damaged: restore it from a copy (${code})`,
        details,
      );
    case "SQLITE_FULL":
      return fails("disk_full", "has no room to grow, nothing was committed: free space and try again", true);
    case "SQLITE_READONLY":
      return fails("catalog_read_only", "cannot be written: check the permissions of the file and its folder");
    case "SQLITE_CANTOPEN":
      return fails("catalog_unavailable", "cannot be opened: check that it and its folder may be read and written");
    case "SQLITE_IOERR":
      return fails("catalog_io", `cannot be read or written, the disk answers ${code}`, true);
    default:
      return fails("catalog_failed", `failed with ${code}: ${(error as Error).message}`);
  }
}
