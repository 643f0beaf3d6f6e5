/** Core in a real browser, in a page and in a web worker: the same Parquet bytes as Node's for every test vector. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findChromium, launchChromium } from "../support/chromium.js";
import { reportUnavailable } from "../support/unavailable.js";
import { loadVectors, type Vector } from "../vectors.js";
import { encodeVectors, type HostResult, readResults, toPortable } from "./encode-vectors.js";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const CORE = fileURLToPath(new URL("../../packages/core/src/index.ts", import.meta.url));

/** Both hosts fetch the vectors, encode them, and say what they found. */
const PAGE = `
import { encodeVectors } from "./encode-vectors.ts";
globalThis.results = async () => encodeVectors(await (await fetch("/vectors.json")).json());
`;
const WORKER = `${PAGE}
globalThis.results().then(
  (results) => postMessage({ results }),
  (error) => postMessage({ error: String(error?.stack ?? error) }),
);
`;

async function bundle(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: FOLDER, loader: "ts" },
    alias: { "@eider/core": CORE },
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "chrome110",
    // A codec that is compiled for all hosts asks for these in Node only.
    external: ["fs", "path"],
    loader: { ".wasm": "dataurl" },
    logLevel: "error",
  });
  return outputFiles[0]!.text;
}

/** Serves a few texts by path on loopback. */
async function serve(files: ReadonlyMap<string, readonly [type: string, body: string]>): Promise<Server> {
  const server = createServer((request, response) => {
    const found = files.get(request.url ?? "");
    if (found === undefined) response.writeHead(404).end();
    else response.setHeader("content-type", found[0]).end(found[1]);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return server;
}

const chromium = await findChromium();
if (chromium === undefined) {
  reportUnavailable("core in a browser", "there is no chromium", "EIDER_SETUP=1 npm test -- test/browser");
}

describe.runIf(chromium !== undefined)("core in a browser", () => {
  const vectors = loadVectors();
  let browser: Browser;
  let server: Server;
  let url: string;
  let expected: HostResult[];

  beforeAll(async () => {
    const portable = vectors.map(toPortable);
    server = await serve(
      new Map([
        ["/", ["text/html", '<!doctype html><script type="module" src="/page.js"></script>']],
        ["/page.js", ["text/javascript", await bundle(PAGE)]],
        ["/worker.js", ["text/javascript", await bundle(WORKER)]],
        ["/vectors.json", ["application/json", JSON.stringify(portable)]],
      ]),
    );
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    expected = readResults(await encodeVectors(portable));
    browser = await launchChromium(chromium!);
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  /** Loads the page and evaluates text in it; whatever the page complains about fails the test. */
  async function evaluate<T>(script: string): Promise<T> {
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

  function check(text: string): void {
    const results = readResults(text);
    expect(results).toHaveLength(vectors.length);
    expect(results).toEqual(expected);
    for (const [i, result] of results.entries()) expectVector(result, vectors[i]!);
  }

  test("in a page", async () => {
    check(await evaluate<string>("results()"));
  });

  test("in a web worker", async () => {
    const answer = await evaluate<{ results?: string; error?: string }>(
      `new Promise((resolve) => {
        const worker = new Worker("/worker.js", { type: "module" });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => resolve({ error: event.message });
      })`,
    );
    expect(answer.error).toBeUndefined();
    check(answer.results!);
  });
});

/** Not only what Node says: what is written in the vector. */
function expectVector({ name, schema, files }: HostResult, vector: Vector): void {
  expect({ name, schema }).toEqual({ name, schema: vector.schema });
  vector.inputs.forEach(({ rejects }, i) => {
    expect({ name, rejects: files[i]!.rejects }).toEqual({ name, rejects: rejects.map((r) => `${r.line}: ${r.code}`) });
  });
  // Later inputs may widen the types of earlier ones, and unknown columns are not in files.
  if (vector.inputs.length > 1) return;
  const rows = vector.rows.map((row) =>
    Object.fromEntries(Object.entries(row as object).filter(([key]) => key in (files[0]!.rows[0] as object))),
  );
  expect({ name, rows: files[0]!.rows }).toEqual({ name, rows });
}
