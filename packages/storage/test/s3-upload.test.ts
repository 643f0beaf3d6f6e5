/** Multipart uploads: equal parts, bounded memory, and nothing left behind whatever fails. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { failure, fakeBucket, inPieces, MIB, pattern, whenRead } from "./s3-fake.js";

const PART = 5 * MIB;
const never = (status: number, code?: string) =>
  ({ effect: "never", answer: { status, ...(code === undefined ? {} : { code }) } }) as const;

/** Sizes of the parts that were sent, by number. */
function partSizes(
  requests: readonly { operation: string; query: ReadonlyMap<string, string>; bytesIn: number }[],
): number[] {
  const sizes: number[] = [];
  for (const { operation, query, bytesIn } of requests) {
    if (operation === "UploadPart") sizes[Number(query.get("partNumber")) - 1] = bytesIn;
  }
  return sizes;
}

// D45
describe("parts", () => {
  test("are equal but the last, whatever the chunks; a body of one part is one put", async () => {
    const { s3, bucket, store } = await fakeBucket({ equalParts: true });
    const mine = store({ partBytes: PART });
    const whole = pattern(33 * MIB);
    const chunk = fc.oneof(fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 1, max: 7 * MIB }));
    await fc.assert(
      fc.asyncProperty(fc.array(chunk, { minLength: 1, maxLength: 40 }), async (sizes) => {
        const before = s3.log.requests.length;
        const total = Math.min(
          whole.length,
          sizes.reduce((sum, size) => sum + size, 0),
        );
        async function* body(): AsyncGenerator<Uint8Array> {
          let at = 0;
          for (const size of sizes) {
            yield whole.subarray(at, Math.min(at + size, total));
            at += size;
          }
        }
        const info = await mine.put("a", body());
        expect(info.size).toBe(total);
        expect(Buffer.compare(s3.objects(bucket).get("a")!, whole.subarray(0, total))).toBe(0);
        const requests = s3.log.requests.slice(before);
        if (total <= PART) {
          expect(requests.map(({ operation }) => operation)).toEqual(["PutObject"]);
          return;
        }
        const parts = partSizes(requests);
        expect(parts.slice(0, -1).every((size) => size === PART)).toBe(true);
        expect(parts.at(-1)).toBe(total - PART * (parts.length - 1));
      }),
      { numRuns: 12 },
    );
  });

  test("of bytes in memory grow so that the limit is kept", async () => {
    const { s3, bucket, store } = await fakeBucket({ limits: { maxParts: 4 } });
    const bytes = pattern(33 * MIB);
    const told: number[] = [];
    await store({ partBytes: PART, maxParts: 4 }).put("a", bytes, { onProgress: (done) => told.push(done) });
    expect(partSizes(s3.log.requests)).toEqual([8.25 * MIB, 8.25 * MIB, 8.25 * MIB, 8.25 * MIB]);
    expect(Buffer.compare(s3.objects(bucket).get("a")!, bytes)).toBe(0);
    expect(told.at(-1)).toBe(bytes.length);
  });

  // D46
  test("of a stream never exceed the limit: it ends there, with a clear error and nothing left", async () => {
    const { s3, bucket, store } = await fakeBucket({ limits: { maxParts: 4 } });
    const mine = store({ partBytes: PART, maxParts: 4 });
    expect(mine.capabilities.maxObjectBytes).toBe(4 * PART);
    let taken = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (; taken < 40 * MIB; taken += MIB) yield new Uint8Array(MIB);
    }
    await expect(mine.put("a", endless())).rejects.toMatchObject({ code: "object_too_large", subject: "a" });
    expect(taken).toBeLessThanOrEqual(21 * MIB);
    expect(partSizes(s3.log.requests).length).toBeLessThanOrEqual(4);
    expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
    await mine.put("a", inPieces(new Uint8Array(4 * PART), MIB));
    expect(s3.objects(bucket).get("a")?.length).toBe(4 * PART);
  });

  // D21
  test("of an empty stream are none: an empty object", async () => {
    const { bucket, s3, store, seen } = await fakeBucket();
    await store().put("a", inPieces(new Uint8Array(0), 1), { ifAbsent: true });
    expect(seen()).toEqual([["PutObject", 200]]);
    expect(s3.objects(bucket).get("a")?.length).toBe(0);
  });
});

test("parts leave while the body is produced, and no more than allowed are under way, in all uploads together", async () => {
  const { s3, store } = await fakeBucket();
  const mine = store({ partBytes: PART, maxInFlight: 3 });
  let open = (): void => undefined;
  const held = new Promise<void>((resolve) => (open = resolve));
  s3.script({ match: { operation: "UploadPart" }, do: { wait: held } });
  let taken = 0;
  async function* source(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < 40; i++, taken += MIB) yield new Uint8Array(MIB);
  }
  const puts = [mine.put("a", source()), mine.put("b", source())];
  const parts = (): number => s3.log.requests.filter(({ operation }) => operation === "UploadPart").length;
  while (parts() < 3) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(parts()).toBe(3);
  // Three parts under way, one waiting in each stream, and one chunk in hand.
  expect(taken).toBeLessThanOrEqual(3 * PART + 2 * PART + 2 * MIB);
  open();
  expect((await Promise.all(puts)).map(({ size }) => size)).toEqual([40 * MIB, 40 * MIB]);
});

// D51
describe("a store that asks for fewer requests", () => {
  test.each([
    ["with a document", { status: 503, code: "SlowDown" }],
    ["without a body", { status: 503 }],
    ["with Retry-After", { status: 503, code: "SlowDown", headers: { "retry-after": "2" } }],
  ] as const)("%s is obeyed: waits grow and differ, and all uploads finish", async (_, answer) => {
    const { s3, bucket, store } = await fakeBucket();
    s3.script(
      ...Array.from({ length: 8 }, (_, i) => ({
        match: { operation: "UploadPart", key: `k${i}`, partNumber: 1, nth: [1, 4] as const },
        do: { effect: "never", answer } as const,
      })),
    );
    const waits: number[][] = [];
    const uploads = Array.from({ length: 8 }, async (_, i) => {
      const mine: number[] = [];
      waits.push(mine);
      let seed = 7919 * (i + 1);
      const random = (): number => {
        seed = (seed * 16_807) % 2_147_483_647;
        return seed / 2_147_483_647;
      };
      const clock = { now: Date.now, sleep: async (ms: number) => void mine.push(ms) };
      await store({ partBytes: PART, retry: { clock, random } }).put(`k${i}`, inPieces(pattern(6 * MIB), MIB));
    });
    await Promise.all(uploads);
    expect(s3.objects(bucket).size).toBe(8);
    for (const each of waits) {
      expect(each).toHaveLength(4);
      for (let i = 1; i < 4; i++) expect(each[i]).toBeGreaterThan(each[i - 1]!);
      if ("headers" in answer) for (const wait of each) expect(wait).toBeGreaterThan(2000);
    }
    expect(new Set(waits.map(([first]) => first)).size).toBe(8);
  });

  test("for too long is an error after the last try; the upload is gone, and the key is free", async () => {
    const { s3, bucket, store, waits } = await fakeBucket();
    s3.script({ match: { operation: "UploadPart" }, do: never(503, "SlowDown") });
    const mine = store({ partBytes: PART, maxInFlight: 1 });
    const error = await failure(mine.put("a", inPieces(pattern(20 * MIB), MIB)));
    expect(error).toMatchObject({ name: "StoreError", code: "store_busy", retryable: true, subject: "a" });
    expect(waits).toHaveLength(7);
    expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
    s3.script();
    await mine.put("a", inPieces(pattern(20 * MIB), MIB), { ifAbsent: false });
    expect(s3.objects(bucket).get("a")?.length).toBe(20 * MIB);
  });
});

// D43
describe("a failed upload leaves nothing", () => {
  test("when its source throws after 2 of 4 parts", async () => {
    const { s3, bucket, store } = await fakeBucket();
    const failed = new Error("the source broke");
    async function* source(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 11; i++) yield new Uint8Array(MIB);
      throw failed;
    }
    expect(await failure(store({ partBytes: PART }).put("a", source()))).toBe(failed);
    expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
    expect(s3.peakUploads(bucket)).toBe(1);
  });

  test("when a part fails for ever, at once and with that error, though the source hangs", async () => {
    const { s3, bucket, store } = await fakeBucket();
    s3.script({ match: { operation: "UploadPart", partNumber: 3 }, do: never(500, "InternalError") });
    let closed = false;
    const source: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => {
        let given = 0;
        return {
          next: () =>
            ++given <= 16
              ? Promise.resolve({ done: false, value: new Uint8Array(MIB) })
              : new Promise<never>(() => undefined),
          return: async () => {
            closed = true;
            return { done: true, value: undefined };
          },
        };
      },
    };
    const error = await failure(store({ partBytes: PART }).put("a", source));
    expect(error).toMatchObject({ code: "store_failed", retryable: true });
    expect(closed).toBe(true);
    await s3.settled();
    expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
  });

  test.each(["refused", "stick"] as const)(
    "when it is aborted while a part is held (late parts: %s)",
    async (lateParts) => {
      const { s3, bucket, store } = await fakeBucket({ lateParts });
      let reached = (): void => undefined;
      const arrived = new Promise<void>((resolve) => (reached = resolve));
      const held = whenRead(() => {
        reached();
        return new Promise((resolve) => setTimeout(resolve, 500));
      });
      s3.script({ match: { operation: "UploadPart", partNumber: 2 }, do: { wait: held } });
      const abort = new AbortController();
      const reason = new Error("enough");
      const putting = failure(
        store({ partBytes: PART }).put("a", inPieces(new Uint8Array(60 * MIB), MIB), { signal: abort.signal }),
      );
      await arrived;
      abort.abort(reason);
      expect(await putting).toBe(reason);
      await s3.settled();
      expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
    },
  );

  test("when a part of bytes in memory fails, or their progress does", async () => {
    const { s3, bucket, store } = await fakeBucket();
    const mine = store({ partBytes: PART });
    s3.script({ match: { operation: "UploadPart", partNumber: 2 }, do: never(403, "AccessDenied") });
    await expect(mine.put("a", new Uint8Array(16 * MIB))).rejects.toMatchObject({ code: "store_denied" });
    s3.script();
    const failed = new Error("enough");
    const onProgress = (): never => {
      throw failed;
    };
    expect(await failure(mine.put("a", new Uint8Array(16 * MIB), { onProgress }))).toBe(failed);
    await s3.settled();
    expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
  });

  test("when a part arrives after the upload was ended: it is ended again", async () => {
    const { s3, bucket, store } = await fakeBucket({ lateParts: "stick" });
    let land = (): void => undefined;
    const later = new Promise<void>((resolve) => {
      land = resolve;
    });
    s3.script(
      { match: { operation: "UploadPart", partNumber: 2 }, do: { effect: { after: later }, answer: "reset" } },
      {
        match: ({ operation }) => {
          if (operation === "ListParts") land();
          return false;
        },
        do: {},
      },
    );
    const mine = store({ partBytes: PART, retry: { attempts: 1 } });
    const error = await failure(mine.put("a", inPieces(pattern(11 * MIB), MIB)));
    expect(error).toMatchObject({ code: "store_disconnected" });
    land();
    await s3.settled();
    expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
  });

  test("when it is aborted while its beginning is answered", async () => {
    const { s3, bucket, store } = await fakeBucket();
    const abort = new AbortController();
    const reason = new Error("enough");
    s3.script({
      match: ({ operation }) => {
        if (operation === "CreateMultipartUpload") setTimeout(() => abort.abort(reason), 20);
        return operation === "CreateMultipartUpload";
      },
      do: { wait: 100 },
    });
    const error = await failure(
      store({ partBytes: PART }).put("a", inPieces(pattern(20 * MIB), MIB), { signal: abort.signal }),
    );
    expect(error).toBe(reason);
    await s3.settled();
    expect(s3.peakUploads(bucket)).toBe(1);
    expect(s3.uploads(bucket)).toEqual([]);
  });

  test("when the answer to its beginning is lost: the stray upload is ended, the other completes", async () => {
    const { s3, bucket, store } = await fakeBucket();
    s3.script({ match: { operation: "CreateMultipartUpload", nth: 1 }, do: { answer: "reset" } });
    await store({ partBytes: PART }).put("a", inPieces(pattern(11 * MIB), MIB));
    expect(s3.peakUploads(bucket)).toBe(2);
    expect(s3.uploads(bucket)).toEqual([]);
    expect(s3.objects(bucket).get("a")?.length).toBe(11 * MIB);
  });

  test("when the store is closed", async () => {
    const { s3, bucket, store } = await fakeBucket();
    const mine = store({ partBytes: PART });
    let reached = (): void => undefined;
    const arrived = new Promise<void>((resolve) => (reached = resolve));
    s3.script({
      match: ({ operation }) => {
        if (operation === "UploadPart") reached();
        return false;
      },
      do: {},
    });
    async function* endless(): AsyncGenerator<Uint8Array> {
      while (true) {
        yield new Uint8Array(MIB);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    const putting = failure(mine.put("a", endless()));
    await arrived;
    await mine[Symbol.asyncDispose]();
    expect(await putting).toMatchObject({ code: "store_closed" });
    expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
  });
});

describe("the completion", () => {
  const COMPLETE = { operation: "CompleteMultipartUpload" };
  const upload = (store: ReturnType<Awaited<ReturnType<typeof fakeBucket>>["store"]>, options = {}) =>
    store.put("a", inPieces(pattern(11 * MIB), MIB), options);

  test.each(["succeeds", "refused"] as const)("whose answer is lost is found (again: %s)", async (completeAgain) => {
    const { s3, bucket, store } = await fakeBucket({ completeAgain });
    s3.script({ match: { ...COMPLETE, nth: 1 }, do: { answer: "reset" } });
    expect((await upload(store({ partBytes: PART }))).size).toBe(11 * MIB);
    expect(s3.objects(bucket).get("a")?.length).toBe(11 * MIB);
    expect(s3.uploads(bucket)).toEqual([]);
  });

  test("that says 200 and then an error is an error, and is tried again", async () => {
    const { s3, store, seen } = await fakeBucket();
    const answer = { status: 200, code: "InternalError", spaces: { count: 3, everyMs: 5 } };
    s3.script({ match: { ...COMPLETE, nth: 1 }, do: { effect: "never", answer } });
    expect((await upload(store({ partBytes: PART }))).size).toBe(11 * MIB);
    expect(seen().filter(([operation]) => operation === "CompleteMultipartUpload")).toHaveLength(2);
  });

  test("that fails for ever leaves nothing, for sure: no unsettled put", async () => {
    const { s3, bucket, store } = await fakeBucket();
    s3.script({ match: COMPLETE, do: never(500, "InternalError") });
    await expect(upload(store({ partBytes: PART }))).rejects.toMatchObject({ code: "store_failed", retryable: true });
    expect([s3.uploads(bucket), [...s3.objects(bucket)]]).toEqual([[], []]);
  });

  test("without retries is sent once; what became of it is known by ending the upload", async () => {
    for (const [fault, there] of [
      [{ answer: "reset" }, true],
      [{ effect: "never", answer: "reset" }, false],
    ] as const) {
      const { s3, bucket, store, seen } = await fakeBucket({ completeAgain: "refused" });
      s3.script({ match: COMPLETE, do: fault });
      const put = upload(store({ partBytes: PART }), { retries: "none" });
      if (there) expect((await put).size).toBe(11 * MIB);
      else await expect(put).rejects.toMatchObject({ code: "store_disconnected" });
      expect(s3.objects(bucket).size).toBe(there ? 1 : 0);
      expect(seen().filter(([operation]) => operation === "CompleteMultipartUpload")).toHaveLength(1);
    }
  });

  test("keeps conditions where the store looks at them there, which it asks once", async () => {
    const { s3, bucket, store, seen } = await fakeBucket();
    const mine = store({ partBytes: PART });
    expect(mine.capabilities.maxConditionalBytes).toBe(64 * MIB);
    await upload(mine, { ifAbsent: true });
    expect(mine.capabilities.maxConditionalBytes).toBe(mine.capabilities.maxObjectBytes);
    expect([...s3.objects(bucket).keys()]).toEqual(["a"]);
    seen();
    await expect(upload(mine, { ifAbsent: true })).rejects.toMatchObject({ code: "object_exists" });
    expect(seen().some(([operation]) => operation === "PutObject")).toBe(false);
    expect(s3.uploads(bucket)).toEqual([]);
    const { etag } = (await mine.head("a"))!;
    await upload(mine, { ifMatch: etag });
    await expect(upload(mine, { ifMatch: "other" })).rejects.toMatchObject({ code: "etag_mismatch" });
  });

  test("where the store ignores them: through memory, and refused beyond it", async () => {
    const { s3, bucket, store } = await fakeBucket();
    const mine = store({ partBytes: PART, maxConditionalBytes: 12 * MIB, conditionalMultipart: false });
    await upload(mine, { ifAbsent: true });
    expect(s3.peakUploads(bucket)).toBe(0);
    await expect(upload(mine, { ifAbsent: true })).rejects.toMatchObject({ code: "object_exists" });
    const long = mine.put("b", inPieces(pattern(17 * MIB), MIB), { ifAbsent: true });
    await expect(long).rejects.toMatchObject({ code: "condition_too_large", subject: "b" });
    expect(s3.objects(bucket).has("b")).toBe(false);
  });
});
