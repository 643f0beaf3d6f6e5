/**
 * `npm test`: makes the checkout ready, then runs the tests. Arguments go to vitest: `npm test -- packages/core`.
 * A suite that cannot run here is named at the end with the command that brings what it needs; with CI=true it is a failure.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootstrap, root, run } from "./bootstrap.mjs";

await bootstrap();

const folder = mkdtempSync(join(tmpdir(), "eider-test-"));
const file = join(folder, "unavailable.ndjson");
try {
  const args = [join(root, "node_modules", "vitest", "vitest.mjs"), "run", ...process.argv.slice(2)];
  process.exitCode = await run(process.execPath, args, { EIDER_UNAVAILABLE: file });
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  const suites = [...new Set(lines)].map((line) => JSON.parse(line));
  if (suites.length > 0) {
    const inCI = process.env.CI === "true";
    console.error(
      `\n${suites.length} suite${suites.length === 1 ? "" : "s"} did not run${inCI ? ", a failure with CI=true" : ""}:`,
    );
    for (const { suite, reason, command } of suites) console.error(`  ${suite}: ${reason}\n    to run it: ${command}`);
    if (inCI) process.exitCode ||= 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
