import { InvalidInputError, NotFoundError } from "@eider/core";
import type { ObjectBody, ObjectStore } from "../store.js";
import {
  type ConformanceCheck,
  chunks,
  concat,
  expect,
  expectBytes,
  expectEqual,
  expectError,
  keysOf,
  pattern,
  read,
  rejection,
  text,
  turn,
} from "./check.js";

/** Nothing under the key: not for head, get or list. */
async function expectNothing(store: ObjectStore, key: string, when: string): Promise<void> {
  expectEqual(await store.head(key), undefined, `head ${when}`);
  await expectError(store.get(key), NotFoundError, `get ${when}`);
  expectEqual(await keysOf(store), [], `the listing ${when}`);
}

/** Gives some bytes, then waits for ever. */
function hanging(state: { closed: boolean; reached?: () => void }): AsyncIterable<Uint8Array> {
  let given = false;
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => {
        if (!given) {
          given = true;
          return Promise.resolve({ done: false, value: pattern(1000) });
        }
        state.reached?.();
        return new Promise<never>(() => undefined);
      },
      return: () => {
        state.closed = true;
        return Promise.resolve({ done: true, value: undefined });
      },
    }),
  };
}

export const streamChecks: readonly ConformanceCheck[] = [
  {
    name: "stream: many tiny chunks arrive in order",
    run: async (store) => {
      const bytes = pattern(20_000);
      async function* tiny(): AsyncGenerator<Uint8Array> {
        for (let i = 0; i < bytes.length; i += 3) yield bytes.slice(i, i + 3);
      }
      expectEqual((await store.put("object", tiny())).size, bytes.length, "size from put");
      expectBytes(await read(store, "object"), bytes, "the object");
    },
  },
  {
    name: "stream: large, uneven and empty chunks arrive in order",
    run: async (store) => {
      const parts = [0, 1, 3_000_000, 0, 7, 262_144, 262_145, 0, 65_536, 1_048_577, 2, 0].map(pattern);
      async function* uneven(): AsyncGenerator<Uint8Array> {
        yield* parts;
      }
      await store.put("object", uneven());
      expectBytes(await read(store, "object"), concat(parts), "the object");
    },
  },
  {
    name: "stream: no chunk at all is an empty object",
    run: async (store) => {
      async function* none(): AsyncGenerator<Uint8Array> {}
      expectEqual((await store.put("object", none())).size, 0, "size from put");
      expectBytes(await read(store, "object"), new Uint8Array(0), "the object");
    },
  },
  {
    name: "stream: a source may use one buffer for every chunk",
    run: async (store) => {
      const bytes = pattern(100_000);
      async function* reusing(): AsyncGenerator<Uint8Array> {
        const buffer = new Uint8Array(1000);
        for (let i = 0; i < bytes.length; i += 1000) {
          buffer.set(bytes.subarray(i, i + 1000));
          yield buffer;
        }
        buffer.fill(0);
      }
      await store.put("object", reusing());
      expectBytes(await read(store, "object"), bytes, "the object");
    },
  },
  {
    name: "stream: a put waits for its source and asks for one chunk at a time",
    run: async (store) => {
      let asking = 0;
      let most = 0;
      let left = 50;
      const source: AsyncIterable<Uint8Array> = {
        [Symbol.asyncIterator]: () => ({
          next: async () => {
            most = Math.max(most, ++asking);
            await turn();
            asking--;
            return left-- > 0 ? { done: false, value: pattern(10) } : { done: true, value: undefined };
          },
        }),
      };
      expectEqual((await store.put("object", source)).size, 500, "size");
      expectEqual(most, 1, "chunks asked for at once");
    },
  },
  {
    name: "stream: nothing is visible before its end",
    run: async (store) => {
      async function* watched(): AsyncGenerator<Uint8Array> {
        for (let i = 0; i < 5; i++) {
          yield pattern(400_000);
          await turn();
          await expectNothing(store, "object", "while the body is read");
        }
      }
      await store.put("object", watched());
      expectEqual((await read(store, "object")).length, 2_000_000, "bytes at the end");
    },
  },
  {
    name: "stream: a source that throws leaves nothing, and its error is the put's",
    run: async (store) => {
      for (const after of [0, 1, 5]) {
        const failure = new Error("the source broke");
        async function* broken(): AsyncGenerator<Uint8Array> {
          for (let i = 0; i < after; i++) yield pattern(300_000);
          throw failure;
        }
        const error = await rejection(store.put("folder/object", broken()), "the put");
        expect(error === failure, `expected the source's own error, got ${String(error)}`);
        await expectNothing(store, "folder/object", `after a source that threw after ${after} chunks`);
      }
    },
  },
  {
    name: "stream: a source that throws leaves the object that was there",
    run: async (store) => {
      const { etag } = await store.put("object", text("old"));
      async function* broken(): AsyncGenerator<Uint8Array> {
        yield pattern(2_000_000);
        throw new Error("the source broke");
      }
      await rejection(store.put("object", broken()), "the put");
      expectBytes(await read(store, "object"), text("old"), "the object");
      expectEqual((await store.head("object"))?.etag, etag, "etag");
    },
  },
  {
    name: "stream: anything but bytes is refused",
    run: async (store) => {
      async function* words(): AsyncGenerator<unknown> {
        yield "text";
      }
      for (const body of ["text", null, 5, words()]) {
        await expectError(store.put("object", body as ObjectBody), InvalidInputError, "the put");
      }
      await expectNothing(store, "object", "after bodies that are not bytes");
    },
  },
  {
    name: "abort: a put with an aborted signal does nothing and reads nothing",
    run: async (store) => {
      let asked = false;
      async function* source(): AsyncGenerator<Uint8Array> {
        asked = true;
        yield text("x");
      }
      const reason = new Error("stop");
      for (const body of [text("x"), source()]) {
        const error = await rejection(store.put("object", body, { signal: AbortSignal.abort(reason) }), "the put");
        expect(error === reason, `expected the signal's reason, got ${String(error)}`);
      }
      expect(!asked, "the source was read");
      await expectNothing(store, "object", "after an aborted put");
    },
  },
  {
    name: "abort: in the middle of a stream it leaves nothing and closes the source",
    run: async (store) => {
      const abort = new AbortController();
      const reason = new Error("stop");
      let closed = false;
      async function* source(): AsyncGenerator<Uint8Array> {
        try {
          for (let i = 0; i < 100; i++) {
            if (i === 5) abort.abort(reason);
            yield pattern(100_000);
          }
        } finally {
          closed = true;
        }
      }
      const error = await rejection(store.put("a/object", source(), { signal: abort.signal }), "the put");
      expect(error === reason, `expected the signal's reason, got ${String(error)}`);
      await turn();
      expect(closed, "the source was not closed");
      await expectNothing(store, "a/object", "after an aborted put");
    },
  },
  {
    name: "abort: it frees a put whose source hangs",
    run: async (store) => {
      const abort = new AbortController();
      const state: { closed: boolean; reached?: () => void } = { closed: false };
      state.reached = () => void turn().then(() => abort.abort(new Error("stop")));
      await rejection(store.put("object", hanging(state), { signal: abort.signal }), "the put");
      await turn();
      expect(state.closed, "the source was not closed");
      await expectNothing(store, "object", "after an aborted put");
    },
  },
  {
    name: "abort: the object that was there stays",
    run: async (store) => {
      await store.put("object", text("old"));
      const abort = new AbortController();
      async function* source(): AsyncGenerator<Uint8Array> {
        yield pattern(2_000_000);
        abort.abort();
        yield pattern(2_000_000);
      }
      await rejection(store.put("object", source(), { signal: abort.signal }), "the put");
      expectBytes(await read(store, "object"), text("old"), "the object");
    },
  },
  {
    name: "abort: after a put has ended it changes nothing",
    run: async (store) => {
      const abort = new AbortController();
      await store.put("object", chunks(text("kept"), 1), { signal: abort.signal });
      abort.abort();
      await turn();
      expectBytes(await read(store, "object"), text("kept"), "the object");
    },
  },
];
