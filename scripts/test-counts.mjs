/**
 * Prints "passed failed" of a test run, and below it a line for each failure: its file, its full name, the first line of
 * its message. `node scripts/test-counts.mjs <vitest json report> <exit code of the run>`.
 * A run that failed for more than its failing tests (a file that does not load, a suite that cannot run here, a crash)
 * counts as one failure at least: a broken run is never green.
 */

import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";

const [file, status] = process.argv.slice(2);
const report = file !== undefined && existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
const passed = report?.numPassedTests ?? 0;
const failures = [];
for (const { name, status, message, assertionResults } of report?.testResults ?? []) {
  const tests = assertionResults.filter((test) => test.status === "failed");
  for (const { fullName, failureMessages } of tests) failures.push(line(name, fullName, failureMessages[0]));
  // A file that fails outside of a test (an import, a hook) has no failing test to count.
  if (status === "failed" && tests.length === 0) failures.push(line(name, "outside of its tests", message));
}
if (failures.length === 0 && (status !== "0" || passed === 0)) {
  failures.push(`the run of the tests: exit code ${status}, ${passed} passed`);
}
console.log([`${passed} ${failures.length}`, ...failures].join("\n"));

function line(path, name, message = "") {
  const first = stripVTControlCharacters(message).trim().split("\n")[0];
  return `${relative(process.cwd(), path)} > ${name}: ${first}`;
}
