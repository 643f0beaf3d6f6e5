/** Programs that tests need and that Debian has. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";

const APT = "/usr/bin/apt-get";
/** Two suites that install at once would meet at apt's own locks and fail. */
const LOCK = "/tmp/eider-apt.lock";

/**
 * Installs packages with `CI=true` or `EIDER_SETUP=1`, as root on Debian and its kin; elsewhere does nothing. It does not
 * throw: whether the programs are there is for the caller to see.
 */
export async function installDebianPackages(names: readonly string[]): Promise<void> {
  const maySetUp = process.env.CI === "true" || process.env.EIDER_SETUP === "1";
  if (!maySetUp || process.getuid?.() !== 0 || !existsSync(APT)) return;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  for (const args of [["update"], ["install", "-y", "--no-install-recommends", ...names]])
    await promisify(execFile)("flock", [LOCK, APT, ...args], { env }).catch(() => undefined);
}
