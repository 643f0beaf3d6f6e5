/** What becomes of a put when its answer is lost, late, wrong or a refusal. */

import { AlreadyExistsError } from "@eider/core";
import { describe, expect, test } from "vitest";
import { failure, fakeBucket, inPieces, MIB, pattern, whenRead } from "./s3-fake.js";

const words = (text: string): Uint8Array => new TextEncoder().encode(text);
const lost = { answer: "reset" } as const;
const broken = { effect: "never", answer: "reset" } as const;
const PUT = { operation: "PutObject" };

describe("a lost answer", () => {
  test("of a creation that succeeded is found by looking: created once, no error", async () => {
    const { s3, bucket, store, seen } = await fakeBucket();
    s3.script({ match: { ...PUT, nth: 1 }, do: lost });
    const info = await store().put("a", words("hello"), { ifAbsent: true });
    expect(info).toMatchObject({ key: "a", size: 5, etag: "5d41402abc4b2a76b9719d911017c592" });
    expect(seen()).toEqual([
      ["PutObject", undefined],
      ["PutObject", 412],
      ["HeadObject", 200],
    ]);
    expect([...s3.objects(bucket)]).toEqual([["a", Buffer.from("hello")]]);
  });

  test("of a creation that another writer won is that writer's object", async () => {
    const { s3, bucket, store } = await fakeBucket();
    await store().put("a", words("first"));
    s3.script({ match: { ...PUT, nth: 1 }, do: broken });
    await expect(store().put("a", words("second"), { ifAbsent: true })).rejects.toBeInstanceOf(AlreadyExistsError);
    expect(s3.objects(bucket).get("a")).toEqual(Buffer.from("first"));
  });

  test("of a replacement that succeeded is found by looking", async () => {
    const { s3, bucket, store } = await fakeBucket();
    const { etag } = await store().put("a", words("first"));
    s3.script({ match: { ...PUT, nth: 1 }, do: lost });
    const info = await store().put("a", words("second"), { ifMatch: etag });
    expect((await store().head("a"))?.etag).toBe(info.etag);
    expect(s3.objects(bucket).get("a")).toEqual(Buffer.from("second"));
  });

  test("a refusal of its own success is a success", async () => {
    const { s3, store, seen } = await fakeBucket();
    s3.script({ match: { ...PUT, nth: 1 }, do: { answer: { status: 412, code: "PreconditionFailed" } } });
    expect((await store().put("a", words("hello"), { ifAbsent: true })).size).toBe(5);
    expect(seen()).toEqual([
      ["PutObject", 412],
      ["HeadObject", 200],
    ]);
  });

  test("a refusal, and then nobody who says whose object is there: unsettled", async () => {
    const { s3, store } = await fakeBucket();
    const refused = { answer: { status: 412, code: "PreconditionFailed" } } as const;
    s3.script({ match: PUT, do: refused }, { match: { operation: "HeadObject" }, do: broken });
    await expect(store().put("a", words("x"), { ifAbsent: true })).rejects.toMatchObject({ code: "put_unsettled" });
  });

  test("an effect that lands after the retry changes nothing", async () => {
    const { s3, bucket, store } = await fakeBucket();
    let land = (): void => undefined;
    const later = new Promise<void>((resolve) => (land = resolve));
    s3.script({ match: { ...PUT, nth: 1 }, do: { effect: { after: later }, answer: "reset" } });
    const mine = store();
    await mine.put("a", words("mine"), { ifAbsent: true });
    const { etag } = (await mine.head("a"))!;
    await mine.put("a", words("newer"), { ifMatch: etag });
    land();
    await s3.settled();
    expect(s3.objects(bucket).get("a")).toEqual(Buffer.from("newer"));
  });

  test("every time: the put is unsettled unless the object is there", async () => {
    const { s3, bucket, store, waits } = await fakeBucket();
    s3.script({ match: PUT, do: broken });
    const unsettled = { name: "StoreError", code: "put_unsettled", retryable: false, subject: "a" };
    await expect(store().put("a", words("x"), { ifAbsent: true })).rejects.toMatchObject(unsettled);
    expect(waits).toHaveLength(7);
    s3.script({ match: { ...PUT, nth: [1, 7] }, do: broken }, { match: PUT, do: lost });
    expect((await store().put("a", words("x"), { ifAbsent: true })).size).toBe(1);
    s3.script({ match: PUT, do: broken });
    // Somebody's object is there: none of these tries can succeed any more.
    await expect(store().put("a", words("y"), { ifAbsent: true })).rejects.toBeInstanceOf(AlreadyExistsError);
    await expect(store().put("a", words("y"))).rejects.toMatchObject(unsettled);
    expect(s3.objects(bucket).get("a")).toEqual(Buffer.from("x"));
  });

  test("and a store that cannot be asked: unsettled", async () => {
    const { s3, store } = await fakeBucket();
    s3.script({ match: PUT, do: lost }, { match: { operation: "HeadObject" }, do: broken });
    await expect(store().put("a", words("x"), { ifAbsent: true })).rejects.toMatchObject({ code: "put_unsettled" });
  });

  test("a request that was cut off has done nothing, and is told as that", async () => {
    const { s3, store } = await fakeBucket();
    s3.script({ match: PUT, do: { cutRequestAt: 1000 } });
    const error = await failure(store({ retry: { attempts: 1 } }).put("a", pattern(8 * MIB)));
    expect(error).toMatchObject({ code: "store_disconnected", retryable: true });
  });
});

describe("without retries", () => {
  const once = { retries: "none", ifAbsent: true } as const;

  test.each([
    ["a lost answer", lost],
    ["a break before the effect", broken],
    ["a 500", { effect: "never", answer: { status: 500, code: "InternalError" } }],
    ["a 503", { effect: "never", answer: { status: 503, code: "SlowDown" } }],
    ["an empty 502", { answer: { status: 502 } }],
  ] as const)("%s is unsettled after one request", async (_, fault) => {
    const { s3, store, seen } = await fakeBucket();
    s3.script({ match: PUT, do: fault });
    await expect(store().put("a", words("x"), once)).rejects.toMatchObject({ code: "put_unsettled" });
    expect(seen()).toHaveLength(1);
  });

  test("a refusal is told as it comes, also of its own success", async () => {
    const { s3, store, seen } = await fakeBucket();
    s3.script({ match: PUT, do: { answer: { status: 412, code: "PreconditionFailed" } } });
    await expect(store().put("a", words("x"), once)).rejects.toBeInstanceOf(AlreadyExistsError);
    s3.script({ match: PUT, do: { effect: "never", answer: { status: 403, code: "AccessDenied" } } });
    await expect(store().put("b", words("x"), once)).rejects.toMatchObject({ code: "store_denied" });
    s3.script({ match: PUT, do: { effect: "never", answer: { status: 409, code: "ConditionalRequestConflict" } } });
    await expect(store().put("c", words("x"), once)).rejects.toMatchObject({ code: "store_busy", retryable: true });
    expect(seen()).toHaveLength(3);
  });

  test("a connection that was never made is no unsettled put", async () => {
    const { s3, store } = await fakeBucket();
    const mine = store();
    await s3.stop();
    await expect(mine.put("a", words("x"), once)).rejects.toMatchObject({ code: "store_unreachable", retryable: true });
  });
});

describe("conditions", () => {
  test("a conflict of racing requests is tried again", async () => {
    const { s3, store } = await fakeBucket();
    const conflict = { effect: "never", answer: { status: 409, code: "ConditionalRequestConflict" } } as const;
    s3.script({ match: { ...PUT, nth: [1, 3] }, do: conflict });
    expect((await store().put("a", words("x"), { ifAbsent: true })).size).toBe(1);
  });

  test("an etag goes with quotes, and without to a store that takes it only so, which is remembered", async () => {
    const { s3, store, seen } = await fakeBucket();
    const mine = store();
    const { etag } = await mine.put("a", words("1"));
    // As Ceph does.
    s3.script({
      match: ({ headers }) => headers["if-match"]?.startsWith('"') ?? false,
      do: { effect: "never", answer: { status: 412, code: "PreconditionFailed" } },
    });
    seen();
    const second = await mine.put("a", words("2"), { ifMatch: etag });
    expect(seen()).toEqual([
      ["PutObject", 412],
      ["HeadObject", 200],
      ["PutObject", 200],
    ]);
    await mine.put("a", words("3"), { ifMatch: second.etag });
    expect(seen()).toEqual([["PutObject", 200]]);
    await expect(mine.put("a", words("4"), { ifMatch: etag })).rejects.toMatchObject({ code: "etag_mismatch" });
  });
});

describe("an abort", () => {
  test("before the request is out as a whole leaves nothing, and throws its reason", async () => {
    const { s3, bucket, store } = await fakeBucket();
    let reached = (): void => undefined;
    const connected = new Promise<void>((resolve) => (reached = resolve));
    s3.script({
      match: ({ operation }) => {
        reached();
        return operation === "PutObject";
      },
      // More than fits into the sockets' buffers is read only when the fake is done waiting.
      do: { cutRequestAt: 32 * MIB },
    });
    const abort = new AbortController();
    const reason = new Error("enough");
    const putting = failure(store({ partBytes: 64 * MIB }).put("a", pattern(48 * MIB), { signal: abort.signal }));
    await connected;
    abort.abort(reason);
    expect(await putting).toBe(reason);
    await s3.settled();
    expect([...s3.objects(bucket)]).toEqual([]);
  });

  test("after that is too late: the answer decides", async () => {
    const { s3, bucket, store } = await fakeBucket();
    let reached = (): void => undefined;
    const arrived = new Promise<void>((resolve) => (reached = resolve));
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    const wait = whenRead(() => {
      reached();
      return held;
    });
    s3.script({ match: PUT, do: { wait } });
    const abort = new AbortController();
    const putting = store().put("a", pattern(1 * MIB), { signal: abort.signal });
    await arrived;
    abort.abort(new Error("enough"));
    setTimeout(answer, 50);
    expect((await putting).size).toBe(MIB);
    expect(s3.objects(bucket).get("a")?.length).toBe(MIB);
  });

  test("between tries of which none can have had an effect throws its reason", async () => {
    const { s3, store } = await fakeBucket();
    s3.script({ match: PUT, do: { effect: "never", answer: { status: 429 } } });
    const abort = new AbortController();
    const reason = new Error("enough");
    const options = { retry: { onRetry: () => abort.abort(reason) } };
    expect(await failure(store(options).put("a", words("x"), { signal: abort.signal }))).toBe(reason);
  });

  test("between tries of which one may have had an effect says so", async () => {
    const { s3, store } = await fakeBucket();
    s3.script({ match: PUT, do: broken });
    const abort = new AbortController();
    const options = { retry: { onRetry: () => abort.abort(new Error("enough")) } };
    const error = await failure(store(options).put("a", words("x"), { signal: abort.signal }));
    expect(error).toMatchObject({ code: "put_unsettled", cause: { message: "enough" } });
  });
});

// D42
describe("checksums", () => {
  test("are left out for other stores: uploads and deletes work where they are refused", async () => {
    const { s3, bucket, store } = await fakeBucket({ checksums: "rejects" });
    const mine = store();
    const bytes = pattern(12 * MIB);
    await mine.put("stream", inPieces(bytes, 1_000_000));
    for (const key of ["a", "b", "c"]) await mine.put(key, words(key));
    await mine.delete(["a", "b", "c"]);
    expect([...s3.objects(bucket).keys()]).toEqual(["stream"]);
    expect(Buffer.compare(s3.objects(bucket).get("stream")!, bytes)).toBe(0);
    const deletion = s3.log.requests.find(({ operation }) => operation === "DeleteObjects");
    expect(deletion?.headers["content-md5"]).toMatch(/^[A-Za-z0-9+/]{22}==$/);
    const sent = s3.log.requests.flatMap(({ headers }) => Object.keys(headers));
    expect(sent.filter((name) => /^x-amz-(checksum|sdk-checksum|trailer)/.test(name))).toEqual([]);
  });

  test("are there where a store wants them", async () => {
    const { s3, bucket, store } = await fakeBucket({ checksums: "requires" });
    const bytes = pattern(12 * MIB);
    const mine = store({ checksums: "when-supported" });
    await mine.put("stream", inPieces(bytes, 1_000_000));
    await mine.put("small", words("x"));
    expect(Buffer.compare(s3.objects(bucket).get("stream")!, bytes)).toBe(0);
    await mine.delete(["small", "stream"]);
    expect([...s3.objects(bucket)]).toEqual([]);
  });
});

// D53, D29
test("keys are encoded once on the wire and never decoded", async () => {
  const { s3, bucket, store } = await fakeBucket();
  const mine = store();
  const keys = ["in/t=1/a:b+c.parquet", "in/q?x=1.parquet", "in/h#1.parquet", "in/p%20q.parquet", "in/p q.parquet"];
  const values = ["u%2Fv", "50%", "x=y", "h:m", "p+q", "sp ace", "ñ"].map((value) => `v=${value}/x`);
  for (const key of [...keys, ...values]) await mine.put(key, words(key), { ifAbsent: true });
  expect([...s3.objects(bucket).keys()].sort()).toEqual([...keys, ...values].sort());
  for (const [key, bytes] of s3.objects(bucket)) expect(bytes).toEqual(Buffer.from(key));
  const targets = s3.log.requests.map(({ target }) => target.replace(`/${bucket}/`, ""));
  expect(targets.slice(0, 5).map((target) => target.replace(/\?x-id=PutObject$/, ""))).toEqual([
    "in/t%3D1/a%3Ab%2Bc.parquet",
    "in/q%3Fx%3D1.parquet",
    "in/h%231.parquet",
    "in/p%2520q.parquet",
    "in/p%20q.parquet",
  ]);
  const listed: string[] = [];
  for await (const { key } of mine.list("")) listed.push(key);
  expect(listed.sort()).toEqual([...keys, ...values].sort());
  await mine.delete([...keys, ...values]);
  expect([...s3.objects(bucket)]).toEqual([]);
});
