/** A real browser for tests: Debian's chromium, or any Chrome that is installed. */

import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { installDebianPackages } from "./debian.js";

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

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

/** Where a browser is; installs Debian's where that is allowed. Undefined where there is none. */
export async function findChromium(): Promise<string | undefined> {
  const found = (): string | undefined => PLACES.find((place) => existsSync(place));
  if (found() === undefined) await installDebianPackages(["chromium"]);
  return found();
}

export function launchChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: FLAGS });
}
