/** A site on loopback that browsers open: bundled scripts and what they fetch. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { expect } from "vitest";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const source = (path: string): string => fileURLToPath(new URL(`../../packages/core/src/${path}`, import.meta.url));

/** A script for browsers, from TypeScript whose imports are relative to this folder. */
export async function bundle(contents: string, codecs: "inside" | "left out" = "inside"): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: FOLDER, loader: "ts" },
    alias: { "@eider/core/ranges": source("ranges.ts"), "@eider/core": source("index.ts") },
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "chrome110",
    // A codec that is compiled for all hosts asks for these in Node only.
    external: codecs === "inside" ? ["fs", "path"] : ["fs", "path", "*.wasm"],
    loader: { ".wasm": "dataurl" },
    logLevel: "error",
  });
  return outputFiles[0]!.text;
}

export interface Site {
  readonly url: string;
  close(): void;
}

export type SiteFile = readonly [type: string, body: string | Uint8Array];

/** Serves files by path. */
export async function serve(files: ReadonlyMap<string, SiteFile>): Promise<Site> {
  const server = createServer((request, response) => {
    const found = files.get(request.url ?? "");
    if (found === undefined) response.writeHead(404).end();
    else response.setHeader("content-type", found[0]).end(found[1]);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => server.close(),
  };
}

/** Loads a page and evaluates text in it once it has set `results`; whatever the page complains about fails the test. */
export async function evaluateIn<T>(browser: Browser, url: string, script: string): Promise<T> {
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.location().url.endsWith("/favicon.ico")) problems.push(message.text());
  });
  try {
    await page.goto(url);
    await page.waitForFunction("globalThis.results !== undefined");
    const result = (await page.evaluate(script)) as T;
    expect(problems).toEqual([]);
    return result;
  } finally {
    await page.close();
  }
}
