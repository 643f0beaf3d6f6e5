/**
 * Prints "passed failed" of a test run: `node scripts/test-counts.mjs <vitest json report> <exit code of the run>`.
 * A run that failed for more than its failing tests (a file that does not load, a suite that cannot run here, a crash)
 * counts as one failure at least: a broken run is never green.
 */

import { existsSync, readFileSync } from "node:fs";

const [file, status] = process.argv.slice(2);
const report = file !== undefined && existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
const passed = report?.numPassedTests ?? 0;
// A file that fails outside of a test (an import, a hook) has no failing test to count.
const brokenFiles = (report?.testResults ?? []).filter(
  ({ status, assertionResults }) => status === "failed" && !assertionResults.some((test) => test.status === "failed"),
).length;
const failed = (report?.numFailedTests ?? 0) + brokenFiles;
const broken = status !== "0" || report === undefined || passed === 0;
console.log(passed, failed === 0 && broken ? 1 : failed);
