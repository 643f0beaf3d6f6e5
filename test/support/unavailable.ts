import { appendFileSync } from "node:fs";

/**
 * Says that a suite cannot run on this machine, so that it is named at the end of `npm test` and never taken for green;
 * with `CI=true` it fails the run. Give the suite by name, what is missing, and the command that brings it:
 * `reportUnavailable("full disk", "mounting a tmpfs needs root", "sudo npm test -- full-disk")`.
 */
export function reportUnavailable(suite: string, reason: string, command: string): void {
  const file = process.env.EIDER_UNAVAILABLE;
  if (file === undefined) console.warn(`${suite} did not run: ${reason}; to run it: ${command}`);
  else appendFileSync(file, `${JSON.stringify({ suite, reason, command })}\n`);
}
