import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A new temporary folder, removed when the tests of the file are done. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "eider-test-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
