import { AlreadyExistsError, InvalidInputError, StoreError } from "@eider/core";
import type { ObjectStore } from "../store.js";
import { type ConformanceCheck, expect, expectBytes, expectEqual, expectError, keysOf, read, text } from "./check.js";

const AWKWARD: readonly string[] = [
  "a+b",
  "a b",
  " a",
  "50%",
  "%",
  "a%2Fb",
  "%2e%2e",
  "%2e%2e%2fx",
  "k=v",
  "h:m",
  "#hash",
  "what?",
  "a&b",
  "a;b,c",
  "'single'",
  '"double"',
  "`tick`",
  "$HOME",
  "{a,b}",
  "[a-z]",
  "(a)",
  "a*b",
  "a|b",
  "<a>",
  "!",
  "@",
  "~",
  "~root",
  "-rf",
  "^",
  "ñ",
  "日本語",
  "😀",
  "שלום",
  "\u200b",
  ".hidden",
  "..a",
  "a..b",
  "a.tmp",
  "x.parquet.crc",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "_eider",
  "tmp",
];

const UNSAFE: readonly string[] = [
  "",
  "/",
  "/a",
  "a/",
  "a//b",
  ".",
  "..",
  "../a",
  "a/..",
  "a/../b",
  "a/./b",
  "./a",
  "a\\b",
  "..\\a",
  "C:\\a",
  "a\0b",
  "a\nb",
  "a\u007f",
  "a\u001fb",
  "\ud800",
  "a\uf03ab",
  "a.",
  "a ",
  "a./b",
  "con",
  "nul .parquet",
  "a/com1 .txt",
  "NUL",
  "nul.txt",
  "a/COM1",
  "lpt9.parquet/x",
  "x".repeat(256),
  "é".repeat(128),
  `${"x".repeat(200)}/`.repeat(6).slice(0, 1025),
  "_eider/tmp/x",
  "t/_eider/TMP",
];

/** Puts two keys that some file systems take for one: either both are kept apart, or the second is refused. */
async function keepApart(store: ObjectStore, first: string, second: string): Promise<void> {
  await store.put(first, text("first"), { ifAbsent: true });
  const refused = await store.put(second, text("second"), { ifAbsent: true }).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (refused !== undefined) {
    const isConflict = refused instanceof StoreError && refused.code === "key_conflict";
    const what = "expected AlreadyExistsError or key_conflict";
    expect(refused instanceof AlreadyExistsError || isConflict, `${what}, got ${String(refused)}`);
    expectEqual(await keysOf(store), [first], "keys");
  } else {
    expectEqual((await keysOf(store)).length, 2, "number of keys");
    expectBytes(await read(store, second), text("second"), "the second object");
  }
  expectBytes(await read(store, first), text("first"), "the first object");
}

export const keyChecks: readonly ConformanceCheck[] = [
  {
    name: "keys: awkward names are kept literally, as objects and as folders",
    run: async (store) => {
      for (const name of AWKWARD) {
        for (const key of [`o/${name}`, `f/${name}/x`]) {
          expectEqual((await store.put(key, text(key))).key, key, "key from put");
        }
      }
      for (const name of AWKWARD) {
        for (const key of [`o/${name}`, `f/${name}/x`]) {
          expectBytes(await read(store, key), text(key), key);
          expectEqual((await store.head(key))?.key, key, "key from head");
          expectEqual((await keysOf(store, key))[0], key, `the first key under ${key}`);
        }
      }
      const listed = await keysOf(store, "o/");
      expectEqual(listed.sort(), AWKWARD.map((name) => `o/${name}`).sort(), "all names");
      await store.delete(listed);
      expectEqual(await keysOf(store, "o/"), [], "names after the delete");
    },
  },
  {
    name: "keys: escapes are not decoded, so that they stay different",
    run: async (store) => {
      const keys = ["e/p q", "e/p%20q", "e/p%2520q", "e/p+q", "e/p%2Bq", "e/a%2Fb", "e/a/b", "e/%61"];
      for (const key of keys) await store.put(key, text(key), { ifAbsent: true });
      for (const key of keys) expectBytes(await read(store, key), text(key), key);
      expectEqual((await keysOf(store)).length, keys.length, "number of keys");
    },
  },
  {
    name: "keys: escapes in upper and lower case are different or refused",
    run: (store) => keepApart(store, "e/a%2Fb", "e/a%2fb"),
  },
  {
    name: "keys: composed and decomposed letters are different or refused",
    run: (store) => keepApart(store, "n/\u00e9", "n/e\u0301"),
  },
  {
    name: "keys: upper and lower case are different or refused",
    run: (store) => keepApart(store, "c/Readme", "c/README"),
  },
  {
    name: "keys: the longest names are kept",
    run: async (store) => {
      const segment = "s".repeat(255);
      const keys = [
        segment,
        `long/${"é".repeat(127)}x`,
        `${segment}1`.slice(1).concat("/", "k".repeat(255), "/", "k".repeat(255)),
      ];
      for (const key of keys) await store.put(key, text(key));
      for (const key of keys) expectBytes(await read(store, key), text(key), `a key of ${key.length} characters`);
      expectEqual((await keysOf(store)).sort(), [...keys].sort(), "keys");
    },
  },
  {
    name: "keys: unsafe keys are InvalidInputError in every call and create nothing",
    run: async (store) => {
      for (const key of UNSAFE) {
        const shown = JSON.stringify(key.slice(0, 40));
        await expectError(store.put(key, text("x")), InvalidInputError, `put ${shown}`, "bad_key");
        await expectError(
          store.put(key, text("x"), { ifAbsent: true }),
          InvalidInputError,
          `create ${shown}`,
          "bad_key",
        );
        await expectError(store.get(key), InvalidInputError, `get ${shown}`, "bad_key");
        await expectError(store.head(key), InvalidInputError, `head ${shown}`, "bad_key");
        await expectError(store.delete(key), InvalidInputError, `delete ${shown}`, "bad_key");
      }
      expectEqual(await keysOf(store), [], "keys");
    },
  },
  {
    name: "keys: a folder and an object of one name exist together or the second is refused",
    run: async (store) => {
      await store.put("a", text("object"));
      const below = await store.put("a/b", text("below")).catch(() => undefined);
      expectBytes(await read(store, "a"), text("object"), "the object");
      if (below === undefined) expectEqual(await keysOf(store), ["a"], "keys");
      else expectEqual(await keysOf(store), ["a", "a/b"], "keys");

      await store.put("c/d", text("below"));
      const above = await store.put("c", text("object")).catch(() => undefined);
      expectBytes(await read(store, "c/d"), text("below"), "the object below");
      expectEqual(await keysOf(store, "c"), above === undefined ? ["c/d"] : ["c", "c/d"], "keys");
    },
  },
];
