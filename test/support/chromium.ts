/** A real browser for tests: Debian's chromium, or any Chrome that is installed. */

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

const APT = "/usr/bin/apt-get";

/** No traffic of its own, and no sandbox, which containers do not allow. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Where a browser is; installs Debian's with `CI=true` or `EIDER_SETUP=1`, as root. Undefined where there is none. */
export function findChromium(): string | undefined {
  const found = (): string | undefined => PLACES.find((place) => existsSync(place));
  const known = found();
  if (known !== undefined) return known;
  const maySetUp = process.env.CI === "true" || process.env.EIDER_SETUP === "1";
  if (!maySetUp || process.getuid?.() !== 0 || !existsSync(APT)) return undefined;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  for (const args of [["update"], ["install", "-y", "--no-install-recommends", "chromium"]]) {
    spawnSync(APT, args, { env, stdio: "ignore" });
  }
  return found();
}

export function launchChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: FLAGS });
}
