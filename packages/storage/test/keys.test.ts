import { InvalidInputError } from "@eider/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assertSafeKey, compareKeys } from "../src/index.js";
import { folderOf, keyToPath, nameToSegment } from "../src/keys.js";

/** Text around everything that orders or escapes differ in: surrogates, U+E000 … U+FFFF, Windows' characters. */
const awkward = fc.string({
  unit: fc.constantFrom("a", "-", "/", "0", "é", "\ud7ff", "\ue000", "～", "\uffff", "😀", "𐀀", "\u{10ffff}", "%", "."),
  maxLength: 6,
});

describe("compareKeys", () => {
  test("orders as Buffer.compare orders the UTF-8 bytes", () => {
    fc.assert(
      fc.property(awkward, awkward, (a, b) => {
        expect(Math.sign(compareKeys(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
      { numRuns: 5000 },
    );
  });

  test("puts U+FF5E before U+1F600, unlike JavaScript's own order", () => {
    expect(compareKeys("～", "😀")).toBeLessThan(0);
    expect("～" < "😀").toBe(false);
  });
});

describe("assertSafeKey", () => {
  test.each([
    ["", "it is empty"],
    ["/a", "starts or ends with '/'"],
    ["a/", "starts or ends with '/'"],
    ["a//b", "has '//'"],
    ["a/../b", "'..' segment"],
    ["a\\b", "backslash"],
    ["a\u0000b", "control character"],
    ["\udc00", "well-formed Unicode"],
    ["v=x.", "ends with a dot or a space"],
    ["v=x /f", "ends with a dot or a space"],
    ["t/Con.parquet", "device name of Windows"],
    ["com¹", "device name of Windows"],
    [`a/${"x".repeat(256)}`, "longer than 255 bytes"],
    [`${"😀".repeat(64)}`, "longer than 255 bytes"],
    [`${"x".repeat(200)}/`.repeat(6), "longer than 1024 bytes"],
    ["_eider/tmp", "for unfinished files"],
    ["lakes/_Eider/Tmp/x", "for unfinished files"],
  ])("refuses %j because %s", (key, reason) => {
    expect(() => assertSafeKey(key)).toThrow(reason);
    expect(() => assertSafeKey(key)).toThrow(InvalidInputError);
    expect(() => assertSafeKey(key)).toThrow(expect.objectContaining({ code: "bad_key", subject: key }));
  });

  test.each([
    "a",
    "tenant=con/x",
    "console .txt",
    "console",
    "com10",
    "_eider/tmpx",
    "_eider/log/00000000000000000001",
    "x_eider/tmp",
    "...a",
    "x".repeat(255),
    "é".repeat(127),
    `${"x".repeat(200)}/`.repeat(5).concat("y".repeat(19)),
  ])("takes %j", (key) => {
    expect(() => assertSafeKey(key)).not.toThrow();
  });

  test("refuses what is not text", () => {
    expect(() => assertSafeKey(undefined as unknown as string)).toThrow("it is not a string");
  });

  test("lets through only keys that stay below a root on every system", () => {
    const risky = fc.string({
      unit: fc.constantFrom("..", ".", "/", "\\", "C:", "a", "\0", " ", "%2e", "~"),
      maxLength: 8,
    });
    fc.assert(
      fc.property(risky, (key) => {
        try {
          assertSafeKey(key);
        } catch {
          return;
        }
        for (const path of [keyToPath(key, false), keyToPath(key, true)]) {
          const parts = path.split(/[\\/]/);
          expect(parts).not.toContain("..");
          expect(parts).not.toContain("");
        }
        // On Windows a colon would name a drive or a stream of another file.
        expect(keyToPath(key, true)).not.toContain(":");
      }),
      { numRuns: 5000 },
    );
  });
});

describe("paths", () => {
  test("on Windows hold characters that it forbids as U+F000 + code, and come back", () => {
    expect(keyToPath('a:b/c?d/"e"|<f>*', true)).toBe("a\uf03ab\\c\uf03fd\\\uf022e\uf022\uf07c\uf03cf\uf03e\uf02a");
    expect(nameToSegment("\uf022e\uf022\uf07c\uf03cf\uf03e\uf02a", true)).toBe('"e"|<f>*');
    expect(keyToPath("a:b/c?d", false)).toBe("a:b/c?d");
    expect(nameToSegment("a:b", false)).toBe("a:b");
  });

  test("know their folder", () => {
    expect(["a", "a/b", "a/b/c", "a/b/", ""].map(folderOf)).toEqual(["", "a", "a/b", "a/b", ""]);
  });
});
