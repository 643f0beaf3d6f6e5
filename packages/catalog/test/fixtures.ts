import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openSqlite, type SqliteDriver } from "../src/sqlite-driver.js";

export * from "./drafts.js";

/** Ends with the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "eider-catalog-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A connection to the file that the catalog knows nothing of. */
export function connect(path: string): SqliteDriver {
  return openSqlite(path, { readonly: false, create: true, blockMs: 5000, copy: false });
}
