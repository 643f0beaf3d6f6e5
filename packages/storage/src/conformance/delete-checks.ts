import { InvalidInputError, NotFoundError, StoreError } from "@eider/core";
import {
  type ConformanceCheck,
  expect,
  expectBytes,
  expectEqual,
  expectError,
  fill,
  keysOf,
  read,
  rejection,
  text,
} from "./check.js";

const MIB = 1024 * 1024;

export const deleteChecks: readonly ConformanceCheck[] = [
  {
    name: "delete: the object is gone for get, head and list",
    run: async (store) => {
      await fill(store, ["a/b", "a/c"]);
      await store.delete("a/b");
      expectEqual(await store.head("a/b"), undefined, "head");
      await expectError(store.get("a/b"), NotFoundError, "get");
      expectEqual(await keysOf(store), ["a/c"], "keys");
    },
  },
  {
    name: "delete: an absent object is no error",
    run: async (store) => {
      await store.delete("absent");
      await fill(store, ["a/b"]);
      for (const key of ["a", "a/b/c", "a/c", "z/z/z"]) await store.delete(key);
      await store.delete("a/b");
      await store.delete("a/b");
      expectEqual(await keysOf(store), [], "keys");
    },
  },
  {
    name: "delete: a list may hold absent and repeated keys, or none",
    run: async (store) => {
      await fill(store, ["a", "b", "c"]);
      await store.delete([]);
      await store.delete(["a", "absent", "c", "a", "x/y"]);
      expectEqual(await keysOf(store), ["b"], "keys");
    },
  },
  {
    name: "delete: many at once",
    run: async (store, { many }) => {
      const keys = Array.from({ length: many }, (_, i) => `d/${i % 10}/${i}`);
      await fill(store, [...keys, "kept"]);
      await store.delete(keys);
      expectEqual(await keysOf(store), ["kept"], "keys");
    },
  },
  {
    name: "delete: keys that begin alike stay, and a folder's name deletes nothing",
    run: async (store) => {
      await fill(store, ["a/b", "a/bc", "a/b-", "ab"]);
      await store.delete("a");
      await store.delete("a/b");
      expectEqual(await keysOf(store), ["a/b-", "a/bc", "ab"], "keys");
    },
  },
  {
    name: "delete: an unsafe key among others deletes nothing",
    run: async (store) => {
      await fill(store, ["a", "b"]);
      await expectError(store.delete(["a", "../b", "b"]), InvalidInputError, "the delete", "bad_key");
      expectEqual(await keysOf(store), ["a", "b"], "keys");
    },
  },
  {
    name: "delete: an emptied folder's name is free for an object, and the reverse",
    run: async (store) => {
      await fill(store, ["a/b/c/d"]);
      await store.delete("a/b/c/d");
      await store.put("a", text("object"));
      expectBytes(await read(store, "a"), text("object"), "the object");
      await store.delete("a");
      await store.put("a/b/c/d/e", text("below"), { ifAbsent: true });
      expectEqual(await keysOf(store), ["a/b/c/d/e"], "keys");
    },
  },
  {
    name: "delete: racing deletes of one object all succeed",
    run: async (store, { rounds }) => {
      for (let round = 0; round < rounds; round++) {
        await fill(store, ["r/x", "r/y"]);
        await Promise.all([store.delete("r/x"), store.delete(["r/x", "r/y"]), store.delete("r/x")]);
        expectEqual(await keysOf(store), [], "keys");
      }
    },
  },
  {
    name: "delete: a put into a folder that empties at the same time succeeds",
    run: async (store, { rounds }) => {
      for (let round = 0; round < 2 * rounds; round++) {
        await store.put("deep/er/old", text("old"));
        await Promise.all([
          store.delete("deep/er/old"),
          store.put("deep/er/new", text("new")),
          store.put("deep/new", text("new"), { ifAbsent: true }),
        ]);
        expectEqual(await keysOf(store), ["deep/er/new", "deep/new"], "keys");
        await store.delete(["deep/er/new", "deep/new"]);
      }
    },
  },
  {
    name: "delete: an aborted signal stops it before it begins",
    run: async (store) => {
      await fill(store, ["a"]);
      const reason = new Error("stop");
      const error = await rejection(store.delete("a", { signal: AbortSignal.abort(reason) }), "the delete");
      expect(error === reason, `expected the signal's reason, got ${String(error)}`);
      expectEqual(await keysOf(store), ["a"], "keys");
    },
  },
  {
    name: "close: every call of a closed store throws StoreError, and closing again is fine",
    run: async (store) => {
      await fill(store, ["a"]);
      await store[Symbol.asyncDispose]();
      await expectError(store.put("b", text("b")), StoreError, "put", "store_closed");
      await expectError(store.get("a"), StoreError, "get", "store_closed");
      await expectError(store.head("a"), StoreError, "head", "store_closed");
      await expectError(store.delete("a"), StoreError, "delete", "store_closed");
      await expectError(keysOf(store), StoreError, "list", "store_closed");
      await store[Symbol.asyncDispose]();
    },
  },
  {
    name: "store: its url names it without credentials",
    run: async (store) => {
      expect(/^[a-z][a-z0-9+.-]+:/.test(store.url), `${store.url} has no scheme`);
      expect(!/^[^/]+:\/\/[^/]*@/.test(store.url), "the url holds credentials");
    },
  },
  {
    name: "store: what it says that it can do, it can",
    run: async (store) => {
      const { conditionalPut, conditionalReplace, maxObjectBytes, maxConditionalBytes } = store.capabilities;
      expectEqual(typeof conditionalPut, "boolean", "type of conditionalPut");
      expectEqual(typeof conditionalReplace, "boolean", "type of conditionalReplace");
      expect(maxObjectBytes >= MIB, `maxObjectBytes is ${maxObjectBytes}`);
      expect(maxConditionalBytes >= MIB, `maxConditionalBytes is ${maxConditionalBytes}`);
      if (store.serverTime !== undefined) {
        await store.head("absent");
        const time = store.serverTime();
        expect(time !== undefined && time > 1e12 && time < 1e14, `serverTime after an answer is ${time}`);
      }
      if (store.localPath === undefined) return;
      await fill(store, ["a/b"]);
      const path = store.localPath("a/b");
      expect(/^(?:\/|[a-z]:[\\/]|\\\\)/i.test(path), `localPath gave ${path}, which is not absolute`);
      expect(path !== store.localPath("a/c"), "localPath gave one path for two keys");
      let refused = false;
      try {
        store.localPath("../x");
      } catch (error) {
        refused = error instanceof InvalidInputError;
      }
      expect(refused, "localPath took an unsafe key");
    },
  },
];
