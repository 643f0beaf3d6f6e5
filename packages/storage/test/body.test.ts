import { expect, test } from "vitest";
import { readBody, resolveRange } from "../src/index.js";

test("a source is closed before the failure of what reads it is told", async () => {
  let closed = false;
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      yield new Uint8Array(1);
      yield new Uint8Array(1);
    } finally {
      await new Promise((resolve) => setTimeout(resolve, 5));
      closed = true;
    }
  }
  const onProgress = (): void => {
    throw new Error("no more");
  };
  await expect(readBody(source(), { onProgress })).rejects.toThrow("no more");
  expect(closed).toBe(true);
});

test("a source that failed by itself is not closed again", async () => {
  let returns = 0;
  const source: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.reject(new Error("broken")),
      return: async () => {
        returns++;
        return { done: true, value: undefined };
      },
    }),
  };
  for (const signal of [undefined, new AbortController().signal]) {
    await expect(readBody(source, signal === undefined ? {} : { signal })).rejects.toThrow("broken");
  }
  expect(returns).toBe(0);
});

test("a signal used for many chunks keeps no listener", async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...args: Parameters<typeof add>): void => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>): void => {
    listeners--;
    remove(...args);
  };
  async function* source(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < 1000; i++) {
      yield new Uint8Array(1);
      expect(listeners).toBe(1);
    }
  }
  expect(await readBody(source(), { signal })).toHaveLength(1000);
  expect(listeners).toBe(0);
});

test("ReadableStream and Blob streams are bodies", async () => {
  const blob = new Blob(["hello ", "world"]);
  expect(new TextDecoder().decode(await readBody(blob.stream()))).toBe("hello world");
});

test("ranges are cut to the object", () => {
  expect(resolveRange(undefined, 7)).toEqual({ start: 0, end: 7 });
  expect(resolveRange({ start: 2, end: 99 }, 7)).toEqual({ start: 2, end: 7 });
  expect(resolveRange({ start: 9 }, 7)).toEqual({ start: 7, end: 7 });
  expect(resolveRange({ suffix: 9 }, 7)).toEqual({ start: 0, end: 7 });
  expect(() => resolveRange({ start: Number.NaN }, 7)).toThrow('{"start":"NaN"}');
});
