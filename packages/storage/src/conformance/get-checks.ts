import { InvalidInputError, NotFoundError } from "@eider/core";
import type { GetOptions } from "../store.js";
import {
  type ConformanceCheck,
  collect,
  concat,
  expect,
  expectBytes,
  expectEqual,
  expectError,
  fill,
  pattern,
  read,
  rejection,
  text,
} from "./check.js";

const MIB = 1024 * 1024;
const SIZE = 100;

/** Ranges of an object of 100 bytes, and the `[start, end)` that they mean. */
const RANGES: readonly (readonly [NonNullable<GetOptions["range"]>, number, number])[] = [
  [{ start: 0 }, 0, 100],
  [{ start: 0, end: 100 }, 0, 100],
  [{ start: 0, end: 1 }, 0, 1],
  [{ start: 99, end: 100 }, 99, 100],
  [{ start: 10, end: 20 }, 10, 20],
  [{ start: 40 }, 40, 100],
  [{ start: 90, end: 1000 }, 90, 100],
  [{ start: 50, end: 50 }, 50, 50],
  [{ start: 0, end: 0 }, 0, 0],
  [{ start: 100 }, 100, 100],
  [{ start: 100, end: 101 }, 100, 100],
  [{ start: 5000, end: 6000 }, 100, 100],
  [{ suffix: 1 }, 99, 100],
  [{ suffix: 30 }, 70, 100],
  [{ suffix: 100 }, 0, 100],
  [{ suffix: 101 }, 0, 100],
  [{ suffix: 5000 }, 0, 100],
  [{ suffix: 0 }, 100, 100],
];

const BAD_RANGES: readonly NonNullable<GetOptions["range"]>[] = [
  { start: -1 },
  { start: 0.5 },
  { start: Number.NaN },
  { start: 20, end: 10 },
  { start: 0, end: -1 },
  { start: 0, end: Number.POSITIVE_INFINITY },
  { suffix: -5 },
  { suffix: 1.5 },
];

export const getChecks: readonly ConformanceCheck[] = [
  {
    name: "get: an absent object is NotFoundError",
    run: async (store) => {
      await fill(store, ["folder/object"]);
      for (const key of ["absent", "folder", "folder/object2", "folder/object/below", "fold"]) {
        await expectError(store.get(key), NotFoundError, `get ${key}`);
        await expectError(store.get(key, { range: { suffix: 5 } }), NotFoundError, `get the end of ${key}`);
      }
    },
  },
  {
    name: "head: an absent object is undefined",
    run: async (store) => {
      await fill(store, ["folder/object"]);
      for (const key of ["absent", "folder", "folder/object2", "folder/object/below", "fold"]) {
        expectEqual(await store.head(key), undefined, `head ${key}`);
      }
    },
  },
  {
    name: "get: ranges give exactly their bytes",
    run: async (store) => {
      const bytes = pattern(SIZE);
      await store.put("object", bytes);
      for (const [range, start, end] of RANGES) {
        expectBytes(await read(store, "object", { range }), bytes.slice(start, end), JSON.stringify(range));
      }
    },
  },
  {
    name: "get: ranges of an empty object give no bytes",
    run: async (store) => {
      await store.put("empty", new Uint8Array(0));
      for (const range of [{ start: 0 }, { start: 0, end: 1 }, { start: 7, end: 9 }, { suffix: 0 }, { suffix: 3 }]) {
        expectBytes(await read(store, "empty", { range }), new Uint8Array(0), JSON.stringify(range));
      }
    },
  },
  {
    name: "get: ranges of a large object are exact at every MiB",
    run: async (store) => {
      const bytes = pattern(4 * MIB + 5);
      await store.put("large", bytes);
      for (const start of [0, MIB - 1, MIB, 2 * MIB - 7, 4 * MIB]) {
        for (const length of [1, MIB - 1, MIB, MIB + 1, 2 * MIB + 3]) {
          const range = { start, end: start + length };
          expectBytes(await read(store, "large", { range }), bytes.slice(start, start + length), JSON.stringify(range));
        }
      }
      expectBytes(await read(store, "large", { range: { suffix: 3 * MIB } }), bytes.slice(MIB + 5), "suffix of 3 MiB");
    },
  },
  {
    name: "get: a range's size is the whole object's",
    run: async (store) => {
      await store.put("object", pattern(SIZE));
      const object = await store.get("object", { range: { suffix: 7 } });
      expectEqual([object.key, object.size], ["object", SIZE], "key and size");
      expectEqual((await collect(object)).length, 7, "bytes");
    },
  },
  {
    name: "get: ranges that are none are InvalidInputError",
    run: async (store) => {
      await store.put("object", pattern(SIZE));
      for (const range of BAD_RANGES) {
        await expectError(store.get("object", { range }), InvalidInputError, `start to end of ${Object.values(range)}`);
      }
    },
  },
  {
    name: "get: a body read twice gives its bytes again or throws",
    run: async (store) => {
      for (const size of [SIZE, 3 * MIB]) {
        const bytes = pattern(size);
        await store.put("object", bytes);
        const object = await store.get("object");
        expectBytes(await collect(object), bytes, "the first reading");
        const again = await collect(object).catch(() => undefined);
        if (again !== undefined) expectBytes(again, bytes, "the second reading");
      }
    },
  },
  {
    name: "get: a body may be left early or never be read",
    run: async (store) => {
      const bytes = pattern(5 * MIB);
      await store.put("large", bytes);
      for (let i = 0; i < 20; i++) {
        await store.get("large");
        for await (const chunk of (await store.get("large")).body) {
          expect(chunk.length > 0, "an empty chunk");
          break;
        }
      }
      expectBytes(await read(store, "large"), bytes, "the object");
    },
  },
  {
    name: "get: many bodies can be read side by side",
    run: async (store) => {
      const bytes = pattern(3 * MIB);
      await store.put("large", bytes);
      const readings = await Promise.all(Array.from({ length: 16 }, () => read(store, "large")));
      for (const reading of readings) expectBytes(reading, bytes, "one of 16 readings");
    },
  },
  {
    name: "get: a body never ends as complete when its object is replaced or deleted",
    run: async (store) => {
      const old = pattern(6 * MIB);
      for (const change of ["replace", "delete"]) {
        await store.put("large", old);
        const { body } = await store.get("large");
        const got: Uint8Array[] = [];
        const reading = (async () => {
          for await (const chunk of body) {
            got.push(chunk);
            if (got.length !== 1) continue;
            if (change === "replace") await store.put("large", new Uint8Array(MIB));
            else await store.delete("large");
          }
        })();
        const complete = await reading.then(
          () => true,
          () => false,
        );
        if (complete) expectBytes(concat(got), old, `a body that outlived a ${change}`);
      }
    },
  },
  {
    name: "get: an aborted signal stops it before or amid the body",
    run: async (store) => {
      const bytes = pattern(6 * MIB);
      await store.put("large", bytes);
      const reason = new Error("stop");
      const aborted = { signal: AbortSignal.abort(reason) };
      expect((await rejection(store.get("large", aborted), "get")) === reason, "get: expected the signal's reason");
      expect((await rejection(store.head("large", aborted), "head")) === reason, "head: expected the signal's reason");

      const abort = new AbortController();
      const got: Uint8Array[] = [];
      const reading = (async () => {
        for await (const chunk of (await store.get("large", { signal: abort.signal })).body) {
          got.push(chunk);
          abort.abort(reason);
        }
      })();
      const error = await reading.then(
        () => undefined,
        (failure: unknown) => failure,
      );
      if (error === undefined) expectBytes(concat(got), bytes, "a body that ended in spite of the abort");
      else expect(error === reason, `expected the signal's reason, got ${String(error)}`);
    },
  },
  {
    name: "get: objects that hold other text than their key are not mixed up",
    run: async (store) => {
      await store.put("a", text("b"));
      await store.put("b", text("a"));
      expectBytes(await read(store, "a"), text("b"), "a");
      expectBytes(await read(store, "b"), text("a"), "b");
    },
  },
];
