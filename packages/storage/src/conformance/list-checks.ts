import type { ObjectStore } from "../store.js";
import { type ConformanceCheck, expect, expectEqual, fill, keysOf, rejection, text, turn } from "./check.js";

/** In the order of UTF-8 bytes, written by hand: `-` 2d, `.` 2e, `/` 2f, `0` 30, `A` 41, `_` 5f, `a` 61, `~` 7e. */
const TREE: readonly string[] = [
  "a",
  "a-b",
  "a.b",
  "a0",
  "ab",
  "abc",
  "b!/x",
  "b-b/z",
  "b.b",
  "b/a",
  "b/a-/x",
  "b/a.x",
  "b/aa/b/c/d",
  "b/b",
  "b0",
  "b_/x",
  "c/d",
  "d",
];

/** U+007A, U+00E9 (c3 a9), U+07FF (df bf), U+FF5E (ef bd 9e), U+1F600 (f0 9f 98 80), which UTF-16 puts before U+FF5E. */
const UNICODE: readonly string[] = ["u/z", "u/é", "u/߿", "u/～", "u/～/x", "u/😀", "u/😀/x", "u/😀～"].filter(
  // In a folder, a file's name cannot be a folder's too.
  (key, _, all) => !all.some((other) => other.startsWith(`${key}/`)),
);

const numbered = (count: number, folder: string): string[] =>
  Array.from({ length: count }, (_, i) => `${folder}/${String(i).padStart(5, "0")}`);

/** Puts the keys in an order that is none. */
async function fillShuffled(store: ObjectStore, keys: readonly string[]): Promise<void> {
  // 7 is prime to the lengths used here, so each key comes once.
  await fill(
    store,
    keys.map((_, i) => keys[(i * 7 + 3) % keys.length]!),
  );
}

export const listChecks: readonly ConformanceCheck[] = [
  {
    name: "list: an empty store has no keys",
    run: async (store) => {
      expectEqual(await keysOf(store), [], "keys");
      expectEqual(await keysOf(store, "any/prefix"), [], "keys under a prefix");
    },
  },
  {
    name: "list: all keys come in the order of their bytes, through all folders",
    run: async (store) => {
      await fillShuffled(store, TREE.slice(0, 17));
      expectEqual(await keysOf(store), TREE.slice(0, 17), "keys");
    },
  },
  {
    name: "list: the order is that of UTF-8, not of UTF-16",
    run: async (store) => {
      await fill(store, [...UNICODE].reverse());
      expectEqual(await keysOf(store), UNICODE, "keys");
      expectEqual(await keysOf(store, "", { after: "u/～/x" }), UNICODE.slice(4), "keys after U+FF5E");
    },
  },
  {
    name: "list: a prefix is plain text, not a folder",
    run: async (store) => {
      await fill(store, TREE);
      for (const prefix of [
        "a",
        "ab",
        "abc",
        "b",
        "b/",
        "b/a",
        "b/aa/",
        "b/aa/b/c/d",
        "b!",
        "c",
        "d",
        "x",
        "b/c",
        "B",
      ]) {
        const expected = TREE.filter((key) => key.startsWith(prefix));
        expectEqual(await keysOf(store, prefix), expected, `keys under ${prefix}`);
      }
    },
  },
  {
    name: "list: a prefix that no key can have gives nothing",
    run: async (store) => {
      await fill(store, TREE);
      for (const prefix of ["/", "/a", "../", "..", "./a", "b//", "b/../a", "b/./", "b/a/", "d/", "\\", "a\0"]) {
        expectEqual(await keysOf(store, prefix), [], `keys under ${JSON.stringify(prefix)}`);
      }
    },
  },
  {
    name: "list: wildcards in a prefix are plain text",
    run: async (store) => {
      await fill(store, ["p/a", "p/b", "p/[ab]", "p/%61"]);
      for (const prefix of ["p/*", "p/?", "*", "p/%", "p/[", "p/_", ".*"]) {
        const expected = ["p/%61", "p/[ab]", "p/a", "p/b"].filter((key) => key.startsWith(prefix));
        expectEqual(await keysOf(store, prefix), expected, `keys under ${prefix}`);
      }
    },
  },
  {
    name: "list: after leaves out the key itself and all before it",
    run: async (store) => {
      await fill(store, TREE);
      for (const [i, key] of TREE.entries()) {
        expectEqual(await keysOf(store, "", { after: key }), TREE.slice(i + 1), `keys after ${key}`);
      }
    },
  },
  {
    name: "list: after may be a text that is no key",
    run: async (store) => {
      await fill(store, TREE);
      const cases: readonly (readonly [string, string])[] = [
        ["", "a"],
        ["!", "a"],
        ["a!", "a-b"],
        ["a/", "a0"],
        ["b", "b!/x"],
        ["b/", "b/a"],
        ["b/a/", "b/aa/b/c/d"],
        ["b/aa", "b/aa/b/c/d"],
        ["b/aa/b/c/", "b/aa/b/c/d"],
        ["b/aa/b/c/d/e", "b/b"],
        ["b/zzz", "b0"],
        ["c/😀", "d"],
      ];
      for (const [after, first] of cases) {
        const expected = TREE.slice(TREE.indexOf(first));
        expectEqual(await keysOf(store, "", { after }), expected, `keys after ${JSON.stringify(after)}`);
      }
      expectEqual(await keysOf(store, "", { after: "d" }), [], "keys after the last");
      expectEqual(await keysOf(store, "", { after: "zzz" }), [], "keys after all");
    },
  },
  {
    name: "list: prefix and after work together",
    run: async (store) => {
      await fill(store, TREE);
      const under = TREE.filter((key) => key.startsWith("b/"));
      expectEqual(await keysOf(store, "b/", { after: "a" }), under, "after before the prefix");
      expectEqual(await keysOf(store, "b/", { after: "b/a" }), under.slice(1), "after inside the prefix");
      expectEqual(await keysOf(store, "b/", { after: "b/aa/b" }), under.slice(3), "after inside a folder of it");
      expectEqual(await keysOf(store, "b/", { after: "b0" }), [], "after behind the prefix");
      expectEqual(await keysOf(store, "b/", { after: "b/b" }), [], "after its last key");
      expectEqual(await keysOf(store, "a-b", { after: "a-b" }), [], "after the only key");
    },
  },
  {
    name: "list: pages by after are the same as one listing",
    run: async (store) => {
      await fill(store, TREE);
      const paged: string[] = [];
      for (let more = true; more; ) {
        more = false;
        const after = paged.at(-1);
        let taken = 0;
        for await (const { key } of store.list("", after === undefined ? {} : { after })) {
          paged.push(key);
          more = true;
          if (++taken === 2) break;
        }
        expect(paged.length <= TREE.length, `too many keys: ${paged}`);
      }
      expectEqual(paged, TREE, "pages of two keys");
    },
  },
  {
    name: "list: more keys than a page of any store come once each",
    run: async (store, { many }) => {
      const keys = numbered(many, "many");
      await fillShuffled(store, keys);
      expectEqual(await keysOf(store, "many/"), keys, "keys");
      expectEqual(await keysOf(store, "", { after: keys[many - 3]! }), keys.slice(many - 2), "the last two");
    },
  },
  {
    name: "list: sizes are those of head",
    run: async (store) => {
      await fill(store, TREE);
      for await (const info of store.list("")) expectEqual(info.size, text(info.key).length, `size of ${info.key}`);
    },
  },
  {
    name: "list: keys that stay come once and in order while others come and go",
    run: async (store, { rounds }) => {
      const stay = numbered(60, "stay");
      await fill(store, stay);
      let done = false;
      const writer = (async () => {
        for (let i = 0; !done; i = (i + 1) % 60) {
          await store.put(`stay/${String(i).padStart(5, "0")}x`, text("x"));
          await store.put(`other/${i}`, text("x"));
          await store.delete([`stay/${String(i).padStart(5, "0")}x`, `other/${i}`]);
          await turn();
        }
      })();
      try {
        for (let round = 0; round < rounds; round++) {
          const keys: string[] = [];
          for await (const { key } of store.list("")) {
            keys.push(key);
            if (keys.length % 20 === 0) await turn();
          }
          expectEqual(
            keys.filter((key) => stay.includes(key)),
            stay,
            "keys that stay",
          );
          expectEqual(keys, [...keys].sort(), "order (all keys are ASCII)");
        }
      } finally {
        done = true;
        await writer;
      }
    },
  },
  {
    name: "list: objects deleted during a listing do not break it",
    run: async (store) => {
      const keys = [...numbered(100, "a"), ...numbered(100, "b"), "c/last"];
      await fill(store, keys);
      const listed: string[] = [];
      for await (const { key } of store.list("")) {
        listed.push(key);
        if (listed.length === 10) await store.delete(keys.slice(50, 200));
      }
      expectEqual(listed.slice(0, 50), keys.slice(0, 50), "keys before the deleted ones");
      expectEqual(listed.at(-1), "c/last", "the last key");
    },
  },
  {
    name: "list: it may be left early, and two may run at once",
    run: async (store) => {
      await fill(store, TREE);
      for await (const { key } of store.list("")) {
        expectEqual(key, "a", "the first key");
        break;
      }
      const [all, some] = await Promise.all([keysOf(store), keysOf(store, "b/")]);
      expectEqual(all, TREE, "all keys");
      expectEqual(some, TREE.slice(9, 14), "keys under b/");
    },
  },
  {
    name: "list: an aborted signal stops it",
    run: async (store) => {
      await fill(store, TREE);
      const reason = new Error("stop");
      const before = await rejection(keysOf(store, "", { signal: AbortSignal.abort(reason) }), "the listing");
      expect(before === reason, `expected the signal's reason, got ${String(before)}`);
    },
  },
];
