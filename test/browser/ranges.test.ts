/** Long texts in a browser: web workers give the bytes of one thread; and the codecs that a browser has to fetch. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findChromium, launchChromium } from "../support/chromium.js";
import { reportUnavailable } from "../support/unavailable.js";
import { encodeAlone, type PageResult, textPieces } from "./ranges-page.js";
import { bundle, evaluateIn, type Site, type SiteFile, serve } from "./site.js";

const PAGE = 'import * as page from "./ranges-page.ts"; globalThis.results = page;';
const WORKER = 'import { serveRanges } from "@eider/core/ranges"; void serveRanges(self);';

const resolve = createRequire(import.meta.url).resolve;
const wasm = (path: string): SiteFile => ["application/wasm", readFileSync(path)];

const chromium = await findChromium();
if (chromium === undefined) {
  reportUnavailable("web workers", "there is no chromium", "EIDER_SETUP=1 npm test -- test/browser");
}

test("one thread in Node: what the rest is compared with", async () => {
  const { rows, rejects, progress } = await encodeAlone();
  // 40,000 lines: 4 cut off (500, 10,473, …), 41 blank (30, 1,027, …).
  expect(rows).toBe(40_000 - 4 - 41);
  expect(rejects).toEqual(["501", "10474", "20447", "30420"].map((line) => `${line}: bad_json`));
  const bytes = [...textPieces()].reduce((sum, piece) => sum + piece.length, 0);
  expect(progress?.bytes).toBe(bytes);
});

describe.runIf(chromium !== undefined)("in a browser", () => {
  let browser: Browser;
  let site: Site;
  /** The same without the codecs' modules. */
  let bare: Site;
  let expected: PageResult;

  beforeAll(async () => {
    const files = new Map<string, SiteFile>([
      ["/", ["text/html", '<!doctype html><script type="module" src="/assets/page.js"></script>']],
      ["/assets/page.js", ["text/javascript", await bundle(PAGE)]],
      ["/assets/worker.js", ["text/javascript", await bundle(WORKER)]],
    ]);
    bare = await serve(new Map([...files, ["/assets/page.js", ["text/javascript", await bundle(PAGE, "left out")]]]));
    site = await serve(
      new Map([
        ...files,
        ["/assets/brotli_wasm_bg.wasm", wasm(join(dirname(resolve("brotli-wasm")), "pkg.web/brotli_wasm_bg.wasm"))],
      ]),
    );
    expected = await encodeAlone();
    browser = await launchChromium(chromium!);
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
    bare?.close();
  });

  const run = <T>(script: string, on = site): Promise<T> => evaluateIn<T>(browser, on.url, script);

  test("one thread, without a worker", async () => {
    expect(await run('results.encodeWith(1, "/assets/worker.js")')).toEqual(expected);
  });

  test.each([2, 3])("%i workers give the same bytes, rows and rejects", async (threads) => {
    expect(await run(`results.encodeWith(${threads}, "/assets/worker.js")`)).toEqual({ ...expected, workers: threads });
  });

  test("where the worker's script is missing, one thread does it all", async () => {
    const page = await browser.newPage();
    await page.goto(site.url);
    await page.waitForFunction("globalThis.results !== undefined");
    const result = (await page.evaluate('results.encodeWith(2, "/assets/none.js")')) as PageResult;
    expect(result.sha256).toBe(expected.sha256);
    await page.close();
  });

  test("an error crosses as what it is, and the pool goes on", async () => {
    expect(await run('results.failWith("/assets/worker.js")')).toEqual({
      name: "SchemaMisfit",
      line: 20_001,
      after: expected.rows,
    });
  });

  test("an abort ends it, and the pool goes on", async () => {
    const { reason, read, after } = await run<{ reason: string; read: number; after: number }>(
      'results.abortWith("/assets/worker.js")',
    );
    expect([reason, after]).toEqual(["enough", expected.rows]);
    expect(read).toBeLessThan(1000);
  });

  test("a text is read no further than its file is taken", async () => {
    const ahead = await run<number>('results.readAhead("/assets/worker.js")');
    expect(ahead).toBeLessThan([...textPieces()].length / 2);
  });

  const CODECS = [["zstd", 1], ["zstd", 3], ["zstd", 19], ["brotli", 5], ["gzip", 6], ["snappy"], ["lz4raw"]] as const;

  test("every codec, at every level", async () => {
    const files = await run<string[]>(`results.compressed(${JSON.stringify(CODECS)})`);
    const rows: unknown[] = [];
    for (const [i, file] of files.entries()) {
      const { buffer } = Uint8Array.from(Buffer.from(file, "base64"));
      const codec = parquetMetadata(buffer).row_groups[0]!.columns[1]!.meta_data!.codec;
      expect([CODECS[i], codec]).toEqual([CODECS[i], CODECS[i]![0].toUpperCase().replace("LZ4RAW", "LZ4_RAW")]);
      rows.push(await parquetReadObjects({ file: buffer, compressors }));
    }
    // Of 2,000 lines one is cut off and two are blank.
    for (const found of rows) expect(found).toEqual(rows[5]);
    expect(rows[5]).toHaveLength(2000 - 1 - 2);
  });

  test("a codec whose module is not served is an error that says what to do", async () => {
    const page = await browser.newPage();
    await page.goto(bare.url);
    await page.waitForFunction("globalThis.results !== undefined");
    const errors = (await page.evaluate('results.compressed([["zstd", 3], ["brotli", 5]])')) as string[];
    await page.close();
    for (const error of errors) expect(error).toMatch(/^codec_not_loaded: .*docs\/browsers.md/);
  });
});
