import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export * from "./drafts.js";

/** Ends with the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "eider-catalog-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
