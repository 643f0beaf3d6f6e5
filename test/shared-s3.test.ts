/** A shared lake by its URL, over a fake S3 that answers over a real socket, and says what it was asked. */

import { CountingStore, type ObjectStore, openStore, PrefixStore } from "@eider/storage";
import { FakeS3 } from "@eider/test-s3";
import { Lake } from "eider";
import { expect, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "./support/folder.js";
import { s3LakeUrl } from "./support/s3-lake.js";

async function startS3(): Promise<{ s3: FakeS3; url: string; openHost: () => Promise<Lake> }> {
  const s3 = await FakeS3.start();
  onTestFinished(() => s3[Symbol.asyncDispose]());
  onTestFinished(() => void vi.unstubAllEnvs());
  const url = s3LakeUrl(s3, await s3.makeBucket(), "lakes/one");
  return { s3, url, openHost: () => Lake.open(url, { cacheDir: temporaryFolder(), stalenessMs: 0 }) };
}

it("two hosts append to one lake on S3, and each sees all of it; a lone small append is one entry", async () => {
  const { s3, openHost } = await startS3();
  await using a = await openHost();
  await using b = await openHost();
  await Promise.all(
    [a, b].flatMap((host, h) =>
      Array.from({ length: 8 }, (_, i) => host.table("t").append([{ h, i }], { batchId: `${h}-${i}` })),
    ),
  );
  for (const host of [a, b]) {
    expect(await host.sql("SELECT count(*) AS n, count(DISTINCT (h, i)) AS d FROM t")).toEqual([{ n: 16n, d: 16n }]);
  }
  expect(await a.snapshots()).toEqual(await b.snapshots());
  s3.log.clear();
  await a.table("t").append([{ h: 9, i: 9 }]);
  expect(s3.log.requests.map(({ operation, key }) => `${operation} ${key.split("/").slice(2, 4).join("/")}`)).toEqual([
    "PutObject _eider/log",
  ]);
});

it("two handles of one process, opened alike, are one host: each sees at once what the other commits", async () => {
  const { url } = await startS3();
  const options = { cacheDir: temporaryFolder(), stalenessMs: 1e9 };
  const [a, b] = await Promise.all([Lake.open(url, options), Lake.open(url, options)]);
  expect(await a.tables()).toEqual([]);
  await b.table("t").append([{ i: 1 }]);
  expect(await a.sql("SELECT i FROM t")).toEqual([{ i: 1n }]);
  await b.close();
  await a.table("t").append([{ i: 2 }]);
  expect(await a.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 2n }]);
  await a.close();
  await using c = await Lake.open(url, options);
  expect(await c.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 2n }]);
});

it("an entry whose answer is lost is found out, and committed once", async () => {
  const { s3, openHost } = await startS3();
  await using a = await openHost();
  await a.table("t").append([{ i: 1 }]);
  const entry = /_eider\/log\/0+2$/;
  for (const [effect, requests] of [
    ["now", ["PutObject", "GetObject"]],
    ["never", ["PutObject", "GetObject", "PutObject"]],
  ] as const) {
    const n = effect === "now" ? 2 : 3;
    const key = effect === "now" ? entry : /_eider\/log\/0+3$/;
    s3.script({ match: { operation: "PutObject", key, nth: 1 }, do: { effect, answer: "reset" } });
    s3.log.clear();
    const { status, receipt } = await a.table("t").append([{ i: n }], { batchId: `b-${n}` });
    expect({ status, snapshot: receipt.snapshot }).toEqual({ status: "committed", snapshot: n });
    const asked = s3.log.requests.filter((request) => key.test(request.key));
    expect(asked.map(({ operation }) => operation)).toEqual(requests);
  }
  await using b = await openHost();
  expect(await b.sql("SELECT i FROM t ORDER BY i")).toEqual([{ i: 1n }, { i: 2n }, { i: 3n }]);
});

it("maintenance ends old uploads of data files that were never finished, and no others", async () => {
  const { s3, url, openHost } = await startS3();
  await using store = await openStore(url);
  await using a = await openHost();
  for (let i = 0; i < 3; i++) await a.table("t").append([{ i }]);
  const id = "01890000-0000-7000-8000-000000000000";
  const [old, current] = [`t/data/1-${id}.parquet`, `t/data/3-${id}.parquet`];
  const uploads = async (from: ObjectStore = store, prefix = ""): Promise<string[]> => {
    const keys: string[] = [];
    for await (const { key } of from.unfinishedUploads!(prefix)) keys.push(key);
    return keys;
  };
  const stopped = new AbortController();
  // Their writers are killed as they send the second part, and cannot end them.
  s3.script({ match: { operation: "AbortMultipartUpload" }, do: { effect: "never", answer: "reset" } });
  await Promise.all(
    [old, current, "t/photo.jpg"].map((key) =>
      store
        .put(
          key,
          (async function* () {
            for (let i = 0; i < 3; i++) yield new Uint8Array(8 * 1024 * 1024);
            stopped.abort(new Error("killed"));
            stopped.signal.throwIfAborted();
          })(),
        )
        .catch((error: unknown) => expect(String(error)).toMatch(/killed/)),
    ),
  );
  expect(await uploads()).toEqual([old, current, "t/photo.jpg"]);
  const below = new PrefixStore(new CountingStore(store), "t");
  expect(await uploads(below, "data/")).toEqual([old.slice(2), current.slice(2)]);
  s3.script();
  expect((await a.maintain()).deleted).toEqual([]);
  // Who may not list them leaves them to the store.
  s3.script({
    match: { operation: "ListMultipartUploads" },
    do: { effect: "never", answer: { status: 403, code: "AccessDenied" } },
  });
  expect((await a.maintain({ graceMs: 0 })).deleted).toEqual([]);
  s3.script();
  expect((await a.maintain({ graceMs: 0 })).deleted).toEqual([old]);
  expect(await uploads()).toEqual([current, "t/photo.jpg"]);
});
