/** Appends that are told to stop: also while their source says nothing, and while it never pauses. */

import { setTimeout as sleep } from "node:timers/promises";
import { Lake } from "eider";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./support/folder.js";

const encoder = new TextEncoder();

async function* silentAfter<T>(first: T): AsyncGenerator<T> {
  yield first;
  await new Promise(() => {});
}

describe("an aborted append ends though its source hangs", () => {
  const sources: Record<string, () => AsyncIterable<object> | ReadableStream | Response> = {
    rows: () => silentAfter({ a: 1 }),
    bytes: () => silentAfter(encoder.encode('{"a":1}\n')),
    "a stream that never begins": () => ({
      [Symbol.asyncIterator]: () => ({ next: () => new Promise<IteratorResult<object>>(() => {}) }),
    }),
    "a web stream": () =>
      new ReadableStream({ start: (controller) => controller.enqueue(encoder.encode('{"a":1}\n')) }),
    "a response": () =>
      new Response(new ReadableStream({ start: (controller) => controller.enqueue(encoder.encode('{"a":1}\n')) })),
  };
  it.each(Object.keys(sources))("%s", async (kind) => {
    await using lake = await Lake.open(temporaryFolder());
    const stop = new AbortController();
    const append = lake.table("t").append(sources[kind]!(), { batchId: "b", signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")), 20);
    await expect(append).rejects.toThrow("enough");
    expect(await lake.tables()).toEqual([]);
    expect(await lake.verify()).toMatchObject({ ok: true, findings: [] });
    expect(await lake.table("t").append([{ a: 1 }], { batchId: "b" })).toMatchObject({ status: "committed" });
  });

  it("the source is told, and a web stream is cancelled with the reason", async () => {
    await using lake = await Lake.open("memory:");
    const told: unknown[] = [];
    const rows = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<IteratorResult<object>>(() => {}),
        return: async () => {
          told.push("rows");
          return { done: true as const, value: undefined };
        },
      }),
    };
    const stream = new ReadableStream({ cancel: (reason) => void told.push((reason as Error).message) });
    const signal = AbortSignal.timeout(20);
    await expect(lake.table("t").append(rows, { signal })).rejects.toMatchObject({ name: "TimeoutError" });
    const stop = new AbortController();
    setTimeout(() => stop.abort(new Error("enough")), 20);
    await expect(lake.table("t").append(stream, { signal: stop.signal })).rejects.toThrow("enough");
    await sleep(0);
    expect(told).toEqual(["rows", "enough"]);
  });
});

describe("an append of a source that never waits", () => {
  const endless: Record<string, () => Iterable<object> | Uint8Array> = {
    "an endless iterable": function* () {
      for (let a = 0; ; a++) yield { a };
    },
    "a long array": () => Array.from({ length: 3_000_000 }, (_, a) => ({ a })),
    "many bytes": () => encoder.encode('{"a":1,"b":"some text"}\n'.repeat(3_000_000)),
  };
  it.each(Object.keys(endless))("lets the timer that aborts it fire: %s", async (kind) => {
    await using lake = await Lake.open(temporaryFolder());
    const stop = new AbortController();
    const source = endless[kind]!();
    setTimeout(() => stop.abort(new Error("enough")), 20);
    await expect(lake.table("t").append(source, { signal: stop.signal })).rejects.toThrow("enough");
    expect(await lake.verify()).toMatchObject({ ok: true, findings: [] });
  });
});
