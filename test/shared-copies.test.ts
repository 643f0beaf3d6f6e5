/** Copies of columns in a cache that processes share, some of which are killed. */

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { FakeS3 } from "@eider/test-s3";
import { Lake } from "eider";
import { expect, it, onTestFinished, vi } from "vitest";
import { runChild } from "./support/child.js";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import { s3LakeUrl } from "./support/s3-lake.js";

const ROWS = 20_000;

interface Answer {
  readonly value: string;
  readonly from: { readonly store: { readonly bytes: number }; readonly cache: { readonly count: number } };
}

it("processes fetch a column once, and one that was killed leaves nothing in their way", async () => {
  const s3 = await FakeS3.start();
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await s3[Symbol.asyncDispose]();
  });
  const lake = s3LakeUrl(s3, await s3.makeBucket(), "lake");
  const cacheDir = temporaryFolder();
  await using writer = await Lake.open(lake, { ...FILES, cacheDir });
  const rows = Array.from({ length: ROWS }, (_, i) => ({ a: i, b: i * 2, s: `${Math.sin(i)} ${Math.cos(i)}` }));
  await writer.table("t").append(rows);
  const files = await writer.table("t").files();
  const size = files.reduce((sum, { bytes }) => sum + bytes, 0);

  const ask = async (sql: string): Promise<Answer> => {
    const { code, lines, stderr } = await runChild("read-copies", { lake, cacheDir, sql });
    expect({ code, errors: /Error/.test(stderr) ? stderr : "" }).toEqual({ code: 0, errors: "" });
    return lines.at(-1) as Answer;
  };
  const sumOfA = String((ROWS * (ROWS - 1)) / 2);
  const first = await ask("SELECT sum(a) FROM t");
  expect(first.value).toBe(sumOfA);
  expect(first.from.store.bytes).toBeGreaterThan(0);
  expect(first.from.store.bytes).toBeLessThan(size / 2);
  expect(await ask("SELECT sum(a) FROM t")).toMatchObject({
    value: sumOfA,
    from: { store: { bytes: 0 }, cache: { count: files.length } },
  });

  const killed = await runChild(
    "read-copies",
    { lake, cacheDir, sql: "SELECT a, b FROM t", stays: true },
    {
      onLine: (_, child) => child.kill("SIGKILL"),
    },
  );
  expect(killed.signal).toBe("SIGKILL");
  const [copies] = readdirSync(cacheDir, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith("eider-cache-2"),
  );
  const processes = (): string[] => readdirSync(join(cacheDir, copies!, "processes"));
  expect(processes()).toHaveLength(1);

  expect(await ask("SELECT sum(b) FROM t")).toMatchObject({
    value: String(ROWS * (ROWS - 1)),
    from: { store: { bytes: 0 } },
  });
  expect(processes()).toEqual([]);
  const objects = join(cacheDir, copies!, "objects");
  const kept = readdirSync(objects).map((name) => statSync(join(objects, name)));
  expect(kept).toHaveLength(files.length);
  expect(kept.map(({ nlink }) => nlink)).toEqual(files.map(() => 1));
});
