import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { root } from "./support/repository.js";

const folder = await mkdtemp(join(tmpdir(), "eider-demo-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What `npm start` runs after it has built; rejects unless it ends by itself with 0. */
async function demo(): Promise<string> {
  const script = join(root, "apps", "demo", "dist", "main.js");
  const { stdout } = await promisify(execFile)(process.execPath, [script, join(folder, "lake")], { timeout: 150_000 });
  return stdout;
}

/** Status, table and rows of each append that was printed, in order. */
function appends(output: string): string[] {
  return [...output.matchAll(/^ {2}(committed|duplicate) +(\w+) +([\d,]+) rows/gm)].map(([, ...found]) =>
    found.join(" "),
  );
}

// Rows counted by Python's json and csv modules, and for Parquet as its footer says (DuckDB's parquet_metadata).
const ROWS = [
  "flights 3,000,000",
  "flights_sample 200,000",
  "birdstrikes 10,000",
  "movies 3,201",
  "earthquakes 1,707",
  "weather 1,461",
];
const all = (status: string): string[] => ROWS.map((rows) => `${status} ${rows}`);

test("npm start's demo commits six files once, answers, and finds duplicates ever after", async () => {
  const first = await demo();
  expect(appends(first)).toEqual([...all("committed"), ...all("duplicate")]);
  // 15,389,869 dollars for 190 Canada geese: summed from the CSV by Python's csv module.
  expect(first).toMatch(/Canada goose +190 +15,389,869/);

  const second = await demo();
  expect(appends(second)).toEqual([...all("duplicate"), ...all("duplicate")]);
});
