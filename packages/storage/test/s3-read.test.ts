/** Reads that break, listings that go on, deletes that fail in part, and what errors say. */

import { inspect } from "node:util";
import { S3Client } from "@aws-sdk/client-s3";
import { InvalidInputError, NotFoundError } from "@eider/core";
import { describe, expect, test } from "vitest";
import { probeStore } from "../src/index.js";
import { S3Store } from "../src/s3.js";
import { failure, fakeBucket, inPieces, MIB, pattern, readAll } from "./s3-fake.js";

const words = (text: string): Uint8Array => new TextEncoder().encode(text);
const GET = { operation: "GetObject" };
const broken = { effect: "never", answer: "reset" } as const;

describe("a read", () => {
  test("that breaks goes on where it was, and gives the whole object or the whole range", async () => {
    const { s3, store, waits } = await fakeBucket();
    const mine = store();
    const bytes = pattern(9 * MIB);
    await mine.put("a", bytes);
    s3.script({ match: { ...GET, nth: [1, 4] }, do: { body: { cutAt: 2 * MIB } } });
    expect(Buffer.compare(await readAll((await mine.get("a")).body), bytes)).toBe(0);
    const ranges = s3.log.requests
      .filter(({ operation }) => operation === "GetObject")
      .map(({ headers }) => headers.range);
    expect(ranges[0]).toBeUndefined();
    for (const range of ranges.slice(1)) expect(range).toMatch(/^bytes=\d+-9437183$/);
    // There was progress each time, so each break counts as the first.
    expect(waits).toEqual(waits.map(() => 50));

    s3.script({ match: { ...GET, nth: [1, 2] }, do: { body: { cutAt: 1000 } } });
    const range = { start: 4 * MIB - 7, end: 6 * MIB + 1 };
    const part = await readAll((await mine.get("a", { range })).body);
    expect(Buffer.compare(part, bytes.subarray(range.start, range.end))).toBe(0);
    s3.script({ match: { ...GET, nth: 1 }, do: { body: { cutAt: 1000 } } });
    const end = await readAll((await mine.get("a", { range: { suffix: 3 * MIB } })).body);
    expect(Buffer.compare(end, bytes.subarray(6 * MIB))).toBe(0);
  });

  test("that ends early as if it were complete goes on, too", async () => {
    const { s3, store } = await fakeBucket();
    const mine = store();
    const bytes = words("0123456789".repeat(10));
    const { etag } = await mine.put("a", bytes);
    const headers = { "content-range": "bytes 0-99/100", etag: `"${etag}"` };
    const answer = { status: 206, text: "0123456789".repeat(5), headers };
    s3.script({ match: { ...GET, nth: 1 }, do: { effect: "never", answer } });
    expect(await readAll((await mine.get("a", { range: { start: 0, end: 100 } })).body)).toEqual(bytes);
  });

  test("that breaks for ever without progress throws", async () => {
    const { s3, store } = await fakeBucket();
    const mine = store();
    await mine.put("a", pattern(3 * MIB));
    s3.script({ match: { ...GET, nth: 1 }, do: { body: { cutAt: MIB } } }, { match: GET, do: broken });
    const { body } = await mine.get("a");
    await expect(readAll(body)).rejects.toMatchObject({ code: "store_disconnected", retryable: true, subject: "a" });
  });

  test.each(["replaced", "deleted"])(
    "of an object that is %s meanwhile throws, and never mixes the two",
    async (how) => {
      const { s3, store } = await fakeBucket();
      const mine = store();
      await mine.put("a", pattern(3 * MIB));
      s3.script({ match: { ...GET, nth: 1 }, do: { body: { cutAt: MIB } } });
      const { body } = await mine.get("a");
      if (how === "replaced") await mine.put("a", new Uint8Array(3 * MIB));
      else await mine.delete("a");
      await expect(readAll(body)).rejects.toMatchObject({ code: "object_changed", subject: "a" });
    },
  );

  test("whose bytes stop coming is begun again", async () => {
    const { s3, store } = await fakeBucket();
    const mine = store({ timeoutMs: 150 });
    const bytes = pattern(3 * MIB);
    await mine.put("a", bytes);
    s3.script({ match: { ...GET, nth: 1 }, do: { body: { pieces: { bytes: MIB, everyMs: 600 } } } });
    expect(Buffer.compare(await readAll((await mine.get("a")).body), bytes)).toBe(0);
    expect(s3.log.requests.filter(({ operation }) => operation === "GetObject")).toHaveLength(2);
  });

  test("by a slow reader is not", async () => {
    const { s3, store } = await fakeBucket();
    const mine = store({ timeoutMs: 100 });
    const bytes = pattern(3 * MIB);
    await mine.put("a", bytes);
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await mine.get("a")).body) {
      if (chunks.length === 1) await new Promise((resolve) => setTimeout(resolve, 300));
      chunks.push(chunk);
    }
    expect(Buffer.compare(Buffer.concat(chunks), bytes)).toBe(0);
    expect(s3.log.requests.filter(({ operation }) => operation === "GetObject")).toHaveLength(1);
  });

  test("is tried again when the answer does not come, and aborted at once", async () => {
    const { s3, store } = await fakeBucket();
    const mine = store({ timeoutMs: 100 });
    await mine.put("a", words("hello"));
    s3.script(
      { match: { ...GET, nth: 1 }, do: { answer: "hang" } },
      { match: { ...GET, nth: 2 }, do: { answer: { status: 500 } } },
    );
    expect(await readAll((await mine.get("a")).body)).toEqual(words("hello"));
    s3.script({ match: {}, do: { answer: "hang" } });
    const abort = new AbortController();
    const reason = new Error("enough");
    setTimeout(() => abort.abort(reason), 30);
    const patient = store();
    const { signal } = abort;
    async function list(): Promise<void> {
      for await (const _ of patient.list("", { signal }));
    }
    const calls = [
      patient.get("a", { signal }),
      patient.head("a", { signal }),
      patient.delete("a", { signal }),
      patient.delete(["a", "b"], { signal }),
      list(),
    ];
    expect(await Promise.all(calls.map(failure))).toEqual([reason, reason, reason, reason, reason]);
  });

  test("of a store that takes no ranges is refused, not wrong", async () => {
    const { s3, store } = await fakeBucket();
    const mine = store();
    await mine.put("a", pattern(1000));
    s3.script({ match: GET, do: { effect: "never", answer: { status: 200, text: "x".repeat(1000) } } });
    await expect(mine.get("a", { range: { start: 10, end: 20 } })).rejects.toMatchObject({ code: "wrong_range" });
  });
});

test("a store that sends many objects side by side listens to one signal without a warning", async () => {
  const warnings: unknown[] = [];
  const onWarning = (warning: Error): void =>
    void (warning.name === "MaxListenersExceededWarning" && warnings.push(warning));
  process.on("warning", onWarning);
  try {
    const { store } = await fakeBucket();
    const mine = store();
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 40 }, (_, i) => mine.put(`k${i}`, words("x"), { signal })));
    const bodies = await Promise.all(Array.from({ length: 40 }, (_, i) => mine.get(`k${i}`, { signal })));
    await Promise.all(bodies.map(({ body }) => readAll(body)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toEqual([]);
  } finally {
    process.off("warning", onWarning);
  }
});

describe("a listing", () => {
  test("goes on over pages and breaks, and leaves out what cannot be a key", async () => {
    const { s3, bucket, store } = await fakeBucket({ limits: { maxKeys: 3 } });
    const mine = store({ prefix: "lake" });
    const keys = ["a", "a b", "b+c", "c%20d", "e&f<g>", "ñ/😀"];
    for (const key of keys) await mine.put(key, words(key));
    // As others make them: a marker of a folder, an empty name.
    const client = new S3Client({
      endpoint: s3.endpoint,
      region: s3.region,
      forcePathStyle: true,
      credentials: { accessKeyId: s3.accessKeyId, secretAccessKey: s3.secretAccessKey },
    });
    const { PutObjectCommand } = await import("@aws-sdk/client-s3");
    for (const Key of ["lake/folder/", "lake/a//b", "other/x"]) {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: "x" }));
    }
    client.destroy();
    s3.script({ match: { operation: "ListObjectsV2", nth: 2 }, do: broken });
    const listed: string[] = [];
    for await (const { key, size } of mine.list("")) {
      listed.push(key);
      expect(size).toBe(words(key).length);
    }
    expect(listed).toEqual(keys);
  });

  test("that is not in order is refused", async () => {
    const { s3, store } = await fakeBucket();
    const contents = ["b", "a"].map((key) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`).join("");
    const text = `<?xml version="1.0"?>\n<ListBucketResult><IsTruncated>false</IsTruncated>${contents}</ListBucketResult>`;
    s3.script({ match: { operation: "ListObjectsV2" }, do: { effect: "never", answer: { status: 200, text } } });
    const listed: string[] = [];
    const listing = (async () => {
      for await (const { key } of store().list("")) listed.push(key);
    })();
    await expect(listing).rejects.toMatchObject({ code: "list_order" });
    expect(listed).toEqual(["b"]);
  });
});

describe("a delete", () => {
  test("of many goes in thousands", async () => {
    const { store, seen } = await fakeBucket();
    await store().delete(Array.from({ length: 2500 }, (_, i) => `k${i}`));
    expect(seen()).toEqual([
      ["DeleteObjects", 200],
      ["DeleteObjects", 200],
      ["DeleteObjects", 200],
    ]);
  });

  test("that fails for some keys names them, and tries again those that are worth it", async () => {
    const { s3, bucket, store } = await fakeBucket();
    const mine = store();
    for (const key of ["a", "b", "c"]) await mine.put(key, words(key));
    const result = (code: string): string =>
      `<?xml version="1.0"?>\n<DeleteResult><Error><Key>b</Key><Code>${code}</Code><Message>m</Message></Error></DeleteResult>`;
    const answer = (code: string) => ({ answer: { status: 200, text: result(code) } }) as const;
    s3.script({ match: { operation: "DeleteObjects", nth: 1 }, do: { effect: "never", ...answer("SlowDown") } });
    await mine.delete(["a", "b"]);
    const deletions = s3.log.requests.filter(({ operation }) => operation === "DeleteObjects");
    expect(deletions).toHaveLength(2);
    expect(deletions[1]!.bytesIn).toBeLessThan(deletions[0]!.bytesIn);
    s3.script({ match: { operation: "DeleteObjects" }, do: answer("AccessDenied") });
    const error = await failure(mine.delete(["b", "c"]));
    expect(error).toMatchObject({ code: "delete_failed", retryable: false, subject: "b" });
    expect(error.message).toContain("AccessDenied");
    expect([...s3.objects(bucket).keys()]).toEqual(["a"]);
  });
});

describe("errors", () => {
  /** All text of an error and its causes. */
  const shown = (error: unknown): string => inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error);

  test.each([
    [{ status: 403, code: "AccessDenied" }, "store_denied", "s3:GetObject"],
    [{ status: 403 }, "store_denied", "s3:GetObject"],
    [{ status: 403, code: "InvalidAccessKeyId" }, "bad_credentials", "access key"],
    [{ status: 403, code: "ExpiredToken" }, "credentials_expired", "expired"],
    [{ status: 400, code: "ExpiredToken" }, "credentials_expired", "expired"],
    [{ status: 404, code: "NoSuchBucket" }, "bucket_not_found", "no such bucket"],
    [
      { status: 301, code: "PermanentRedirect", headers: { "x-amz-bucket-region": "eu-west-3" } },
      "wrong_region",
      "eu-west-3",
    ],
    [{ status: 501, code: "NotImplemented" }, "not_supported", "when-required"],
    [{ status: 503, code: "SlowDown" }, "store_busy", "later"],
    [{ status: 500, code: "InternalError" }, "store_failed", "again"],
    [{ status: 403, code: "InvalidObjectState" }, "object_archived", "Restore"],
    [{ status: 418, code: "Teapot" }, "store_refused", "Teapot"],
  ] as const)("of %j are %s", async (answer, code, says) => {
    const { s3, store } = await fakeBucket();
    s3.script({ match: GET, do: { effect: "never", answer } });
    const error = await failure(store().get("a"));
    expect(error).toMatchObject({ name: "StoreError", code });
    expect(error.message).toContain(says);
    for (const secret of [s3.secretAccessKey, s3.accessKeyId]) expect(shown(error)).not.toContain(secret);
  });

  test("of wrong credentials show neither them nor what the server echoes", async () => {
    const { s3, bucket, store } = await fakeBucket();
    const credentials = {
      accessKeyId: s3.accessKeyId,
      secretAccessKey: "hunter2-hunter2",
      sessionToken: "tok-hunter3",
    };
    const mine = store({ credentials });
    const calls = [mine.get("a"), mine.put("a", words("x")), mine.delete(["a", "b"])];
    for (const error of await Promise.all(calls.map(failure))) {
      expect(error).toMatchObject({ code: "bad_credentials", retryable: false });
      expect(shown(error)).not.toMatch(/hunter|fake-access-key|AWS4-HMAC/);
    }
    expect(inspect(mine, { depth: 10, showHidden: true })).not.toMatch(/hunter/);
    expect(mine.url).toBe(`s3://${bucket}`);
  });

  test("of a wrong clock say by how much; one that the SDK can correct is corrected", async () => {
    const { s3, store, seen } = await fakeBucket({ clock: () => Date.now() + 3_600_000 });
    const mine = store();
    await mine.put("a", words("x"));
    expect(seen()).toEqual([
      ["PutObject", 403],
      ["PutObject", 200],
    ]);
    expect(Math.abs(mine.serverTime()! - Date.now() - 3_600_000)).toBeLessThan(5000);
    s3.script({ match: GET, do: { effect: "never", answer: { status: 403, code: "RequestTimeTooSkewed" } } });
    const error = await failure(mine.get("a"));
    expect(error).toMatchObject({ code: "clock_skew", retryable: false });
    expect(error.message).toMatch(/differ by 3(599|600|601) seconds/);
  });

  test("absent objects and buckets are told apart", async () => {
    const { store } = await fakeBucket();
    await expect(store().get("a")).rejects.toBeInstanceOf(NotFoundError);
    expect(await store().head("a")).toBeUndefined();
    const nowhere = store({ bucket: "no-such-bucket" });
    const calls = [nowhere.get("a"), nowhere.put("a", words("x")), nowhere.delete("a"), nowhere.delete(["a", "b"])];
    for (const error of await Promise.all(calls.map(failure)))
      expect(error).toMatchObject({ code: "bucket_not_found" });
  });

  test("of a server that is not there name the place", async () => {
    const { s3, store } = await fakeBucket();
    const mine = store({ retry: { attempts: 1 } });
    await s3.stop();
    const error = await failure(mine.get("a"));
    expect(error).toMatchObject({ code: "store_unreachable", retryable: true });
    expect(error.message).toContain(s3.endpoint);
  });

  test.each([
    [{ bucket: "" }, "bucket"],
    [{ bucket: "a/b" }, "bucket"],
    [{ endpoint: "example.com" }, "endpoint"],
    [{ endpoint: "https://me:hunter2@example.com" }, "endpoint"],
    [{ endpoint: "https://example.com/path" }, "endpoint"],
    [{ partBytes: 5 * MIB - 1 }, "partBytes"],
    [{ maxParts: 10_001 }, "maxParts"],
    [{ maxInFlight: 0 }, "maxInFlight"],
    [{ timeoutMs: Number.NaN }, "timeoutMs"],
    [{ anonymous: true, credentials: { accessKeyId: "a", secretAccessKey: "b" } }, "anonymous"],
  ])("of options %j name the option", (options, name) => {
    const make = (): S3Store => new S3Store({ bucket: "bucket", ...options });
    expect(make).toThrow(InvalidInputError);
    expect(make).toThrow(expect.objectContaining({ code: "bad_store_options", subject: name }));
    expect(make).not.toThrow("hunter2");
  });
});

test("anonymous stores do not sign", async () => {
  const { s3, bucket } = await fakeBucket({ anonymous: true });
  await using store = new S3Store({ bucket, endpoint: s3.endpoint, anonymous: true });
  await store.put("a", words("hello"));
  expect(await readAll((await store.get("a")).body)).toEqual(words("hello"));
  expect(s3.log.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
});

test("a store that may only be read refuses to be written, without a request", async () => {
  const { store, seen } = await fakeBucket();
  const mine = store({ readOnly: true });
  await expect(mine.put("a", words("x"))).rejects.toMatchObject({ code: "store_read_only" });
  await expect(mine.delete("a")).rejects.toMatchObject({ code: "store_read_only" });
  expect(seen()).toEqual([]);
});

describe("a client of the caller's", () => {
  const clientOf = (
    s3: { endpoint: string; accessKeyId: string; secretAccessKey: string },
    maxAttempts: number,
  ): S3Client =>
    new S3Client({
      endpoint: s3.endpoint,
      region: "us-east-1",
      forcePathStyle: true,
      maxAttempts,
      requestChecksumCalculation: "WHEN_REQUIRED",
      credentials: { accessKeyId: s3.accessKeyId, secretAccessKey: s3.secretAccessKey },
    });

  test("works, settles lost answers, and stays open", async () => {
    const { s3, bucket } = await fakeBucket();
    const client = clientOf(s3, 1);
    const store = new S3Store({ bucket, client, partBytes: 5 * MIB });
    s3.script({ match: { operation: "PutObject", nth: 1 }, do: { answer: "reset" } });
    await store.put("a", words("hello"), { ifAbsent: true });
    const bytes = pattern(11 * MIB);
    await store.put("b", inPieces(bytes, MIB));
    s3.script({ match: { ...GET, nth: 1 }, do: { body: { cutAt: 3 * MIB } } });
    expect(Buffer.compare(await readAll((await store.get("b")).body), bytes)).toBe(0);
    await store.delete(["a", "b"]);
    expect([...s3.objects(bucket)]).toEqual([]);
    expect(store.serverTime()).toBeGreaterThan(1e12);
    await store[Symbol.asyncDispose]();
    const { ListBucketsCommand } = await import("@aws-sdk/client-s3");
    expect((await client.send(new ListBucketsCommand({}))).Buckets).toHaveLength(1);
    client.destroy();
  });

  test("that retries by itself is refused", async () => {
    const { s3, bucket } = await fakeBucket();
    const client = clientOf(s3, 3);
    await using store = new S3Store({ bucket, client });
    await expect(store.put("a", words("x"))).rejects.toMatchObject({ code: "bad_store_options" });
    client.destroy();
  });
});

describe("probeStore", () => {
  test("lets a store pass that keeps conditions, and leaves nothing behind", async () => {
    const { s3, bucket, store } = await fakeBucket();
    await probeStore(store());
    expect([...s3.objects(bucket)]).toEqual([]);
  });

  test("names a store that ignores them", async () => {
    const { s3, bucket, store } = await fakeBucket({ conditions: "ignores" });
    const error = await failure(probeStore(store()));
    expect(error).toMatchObject({ code: "no_conditional_put" });
    expect(error.message).toContain("4 succeeded");
    expect([...s3.objects(bucket)]).toEqual([]);
  });
});
