/** Core in a real browser, in a page and in a web worker: the same Parquet bytes as Node's for every test vector. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findChromium, launchChromium } from "../support/chromium.js";
import { reportUnavailable } from "../support/unavailable.js";
import { loadVectors, type Vector } from "../vectors.js";
import { encodeVectors, type HostResult, readResults, toPortable } from "./encode-vectors.js";
import { bundle, evaluateIn, type Site, serve } from "./site.js";

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

const chromium = await findChromium();
if (chromium === undefined) {
  reportUnavailable("core in a browser", "there is no chromium", "EIDER_SETUP=1 npm test -- test/browser");
}

describe.runIf(chromium !== undefined)("core in a browser", () => {
  const vectors = loadVectors();
  let browser: Browser;
  let site: Site;
  let expected: HostResult[];

  beforeAll(async () => {
    const portable = vectors.map(toPortable);
    site = await serve(
      new Map([
        ["/", ["text/html", '<!doctype html><script type="module" src="/page.js"></script>']],
        ["/page.js", ["text/javascript", await bundle(PAGE)]],
        ["/worker.js", ["text/javascript", await bundle(WORKER)]],
        ["/vectors.json", ["application/json", JSON.stringify(portable)]],
      ]),
    );
    expected = readResults(await encodeVectors(portable));
    browser = await launchChromium(chromium!);
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
  });

  function check(text: string): void {
    const results = readResults(text);
    expect(results).toHaveLength(vectors.length);
    expect(results).toEqual(expected);
    for (const [i, result] of results.entries()) expectVector(result, vectors[i]!);
  }

  test("in a page", async () => {
    check(await evaluateIn<string>(browser, site.url, "results()"));
  });

  test("in a web worker", async () => {
    const answer = await evaluateIn<{ results?: string; error?: string }>(
      browser,
      site.url,
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
