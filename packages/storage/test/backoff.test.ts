import { StoreError } from "@eider/core";
import { expect, test } from "vitest";
import { Backoff, isRetryable, type RetryClock, realClock, retrying } from "../src/backoff.js";
import { MemoryStore, RetryStore } from "../src/index.js";
import { S3Store } from "../src/s3.js";

const busy = (retryAfterMs?: number): StoreError =>
  new StoreError("store_busy", "busy", { retryable: true, retryAfterMs });

/** A clock on which nobody waits, and the waits that were asked of it. */
function recorder(): { waits: number[]; clock: RetryClock } {
  const waits: number[] = [];
  return { waits, clock: { now: () => 0, sleep: async (milliseconds) => void waits.push(milliseconds) } };
}

async function failing(options: object, error: unknown = busy()): Promise<{ calls: number; failure: unknown }> {
  let calls = 0;
  const failure = await retrying(() => {
    calls++;
    return Promise.reject(error);
  }, options).catch((thrown: unknown) => thrown);
  return { calls, failure };
}

test("waits double up to their limit, each at random in the upper half of its bound", async () => {
  for (const [random, expected] of [
    [0, [50, 100, 200, 400, 500, 500]],
    [0.5, [75, 150, 300, 600, 750, 750]],
  ] as const) {
    const { waits, clock } = recorder();
    const error = busy();
    const options = { attempts: 7, baseMs: 100, maxMs: 1000, clock, random: () => random };
    expect(await failing(options, error)).toEqual({ calls: 7, failure: error });
    expect(waits).toEqual(expected);
  }
});

test("callers that fail together come back apart, and each waits longer every time", async () => {
  const firsts = new Set<number>();
  for (let caller = 0; caller < 50; caller++) {
    const { waits, clock } = recorder();
    await failing({ attempts: 6, clock });
    for (let i = 1; i < waits.length; i++) expect(waits[i]).toBeGreaterThanOrEqual(waits[i - 1]!);
    firsts.add(waits[0]!);
  }
  expect(firsts.size).toBeGreaterThan(40);
});

test("the store's own wish is the least wait, and one beyond the limit goes to the caller", async () => {
  const { waits, clock } = recorder();
  const options = { attempts: 3, baseMs: 100, maxMs: 5000, clock, random: () => 0 };
  await failing(options, busy(2000));
  expect(waits).toEqual([2050, 2100]);
  const late = busy(5001);
  expect(await failing(options, late)).toEqual({ calls: 1, failure: late });
  waits.length = 0;
  await failing({ ...options, attempts: 2, maxMs: 2000 }, busy(2000));
  expect(waits).toEqual([2000]);
});

test("only what calls itself retryable is tried again", async () => {
  const final = new StoreError("store_full", "full");
  const foreign = Object.assign(new Error("foreign"), { retryable: true });
  for (const error of [final, foreign, new TypeError("bug"), null]) {
    expect(isRetryable(error)).toBe(false);
    expect(await failing({ clock: recorder().clock }, error)).toEqual({ calls: 1, failure: error });
  }
});

test("one attempt is no retry, and the number of tries starts again after progress", async () => {
  expect((await failing({ attempts: 1, clock: recorder().clock })).calls).toBe(1);
  const { waits, clock } = recorder();
  const backoff = new Backoff({ attempts: 3, clock, random: () => 0 });
  for (let i = 0; i < 5; i++) {
    await backoff.wait(busy());
    backoff.reset();
  }
  expect(waits).toEqual([50, 50, 50, 50, 50]);
});

test("what is tried again is told, and who is told may end it", async () => {
  const told: object[] = [];
  const error = busy();
  const { clock } = recorder();
  await failing({ attempts: 3, clock, random: () => 0, onRetry: (notice: object) => told.push(notice) }, error);
  expect(told).toEqual([
    { error, attempt: 1, delayMs: 50 },
    { error, attempt: 2, delayMs: 100 },
  ]);
  const enough = new Error("enough");
  const onRetry = (): never => {
    throw enough;
  };
  expect(await failing({ clock, onRetry })).toEqual({ calls: 1, failure: enough });
});

test("an abort ends a real wait at once with its own reason, and is seen before it too", async () => {
  const abort = new AbortController();
  const reason = new Error("stop");
  const backoff = new Backoff({ baseMs: 3_600_000, maxMs: 3_600_000 });
  const waiting = backoff.wait(busy(), abort.signal);
  abort.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  let calls = 0;
  const attempt = (): Promise<never> => {
    calls++;
    return Promise.reject(busy());
  };
  await expect(retrying(attempt, {}, abort.signal)).rejects.toBe(reason);
  expect(calls).toBe(1);
  await realClock.sleep(1);
});

test.each([
  ["attempts", { attempts: 0 }],
  ["attempts", { attempts: 1.5 }],
  ["attempts", { attempts: Number.NaN }],
  ["baseMs", { baseMs: -1 }],
  ["baseMs", { baseMs: Number.NaN }],
  ["maxMs", { maxMs: Number.POSITIVE_INFINITY }],
  ["maxMs", { maxMs: 2 ** 31 }],
])("a store refuses retries without an end or a wait: %s, %j", (subject, retry) => {
  const refusal = expect.objectContaining({ name: "InvalidInputError", code: "bad_option", subject });
  expect(() => new RetryStore(new MemoryStore(), retry)).toThrow(refusal);
  expect(() => new S3Store({ bucket: "bucket", region: "eu-central-1", retry })).toThrow(refusal);
});
