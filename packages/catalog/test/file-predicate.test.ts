import type { BoundValue, ColumnStatistics, DataType, Schema } from "@eider/core";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Catalog } from "../src/catalog.js";
import { ANY_FILE, allOf, anyOf, type Comparison, type FilePredicate } from "../src/file-predicate.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { append, create, dataFile, draft, statistics } from "./fixtures.js";

const INT: DataType = { kind: "int64" };
const FLOAT: DataType = { kind: "float64" };
const TEXT: DataType = { kind: "string" };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

let catalog: Catalog;
beforeEach(async () => {
  catalog = await SqliteCatalog.open({ path: ":memory:" });
  onTestFinished(() => catalog[Symbol.asyncDispose]());
});

const schemaOf = (...types: DataType[]): Schema => ({
  fields: types.map((type, i) => ({ id: i + 1, name: `c${i + 1}`, type, nullable: true })),
});

/** A table whose one column has these statistics, a file each; files are called a, b, c … */
async function table(type: DataType, files: readonly Partial<ColumnStatistics>[]): Promise<void> {
  await catalog.commit(
    draft(
      create("t", "t", { schema: schemaOf(type), lastFieldId: 1 }),
      append("t", "b1", [], {
        rows: files.length,
        files: files.map((column, i) => dataFile("abcdefgh"[i]!, { columns: [statistics(1, column)] })),
      }),
    ),
  );
}

const compare = (type: DataType, comparison: Comparison, value: BoundValue, id = 1): FilePredicate => ({
  kind: "compare",
  field: { id, type },
  comparison,
  value,
});

/** Names of the files that may match. */
const found = async (where: FilePredicate): Promise<string> =>
  (await catalog.files("t", undefined, { where, statistics: false })).map(({ key }) => key).join("");

describe("bounds", () => {
  test.each([
    ["=", 10n, "ab"],
    ["=", 15n, "b"],
    ["=", 31n, ""],
    ["<", 10n, "a"],
    ["<=", 10n, "ab"],
    [">", 20n, "c"],
    [">=", 20n, "bc"],
    ["<>", 30n, "ab"],
    ["<>", 10n, "abc"],
  ] as const)("%s %s", async (comparison, value, files) => {
    await table(INT, [
      { min: 0n, max: 10n },
      { min: 10n, max: 20n },
      { min: 30n, max: 30n },
    ]);
    expect(await found(compare(INT, comparison, value))).toBe(files);
  });

  test("that a file does not tell may be any", async () => {
    await table(INT, [{ min: 0n, max: 1n }, {}, { min: 5n }, { valueCount: 3, nullCount: 3 }]);
    expect(await found(compare(INT, "=", 7n))).toBe("bc");
  });

  test("of unsigned integers above 2^63", async () => {
    const type: DataType = { kind: "uint64" };
    await table(type, [
      { min: 1n, max: 2n },
      { min: 2n ** 63n, max: 2n ** 64n - 1n },
    ]);
    expect(await found(compare(type, ">", 2n ** 63n))).toBe("b");
    expect(await found(compare(type, "<", 2n ** 63n))).toBe("a");
  });

  test("of text are in the order of UTF-8, which is not that of JavaScript", async () => {
    await table(TEXT, [
      { min: bytes("\uffff"), max: bytes("\uffff") },
      { min: bytes("\u{1f600}"), max: bytes("\u{1f600}") },
    ]);
    expect(await found(compare(TEXT, ">", bytes("\uffff")))).toBe("b");
  });

  test("that were cut are not values", async () => {
    await table(TEXT, [{ min: bytes("aa"), max: bytes("aa"), minExact: false, maxExact: false }]);
    expect(await found(compare(TEXT, "<>", bytes("aa")))).toBe("a");
  });

  test("say nothing of NaN, which is above all numbers and differs from them", async () => {
    await table(FLOAT, [
      { min: 0, max: 1 },
      { min: 0, max: 1, hasNaN: true },
      { min: 1, max: 1, hasNaN: true },
      { hasNaN: true },
    ]);
    expect(await found(compare(FLOAT, ">", 5))).toBe("bcd");
    expect(await found(compare(FLOAT, ">=", 5))).toBe("bcd");
    expect(await found(compare(FLOAT, "<>", 1))).toBe("abcd");
    expect(await found(compare(FLOAT, "<", 0))).toBe("d");
    expect(await found(compare(FLOAT, "=", Number.NaN))).toBe("abcd");
  });

  test("of −0 and 0 are equal", async () => {
    await table(FLOAT, [
      { min: -0, max: -0 },
      { min: 0, max: 0 },
    ]);
    expect(await found(compare(FLOAT, "=", 0))).toBe("ab");
    expect(await found(compare(FLOAT, "<", -0))).toBe("");
    expect(await found(compare(FLOAT, ">", -0))).toBe("");
  });
});

describe("a lower and an upper end", () => {
  const FILES = [{ min: 0n, max: 10n }, { min: 10n, max: 20n }, { min: 15n, max: 40n }, {}, { min: 30n, max: 30n }];

  test.each([
    [">=", 11n, "<=", 14n, "bd"],
    [">=", 10n, "<=", 10n, "abd"],
    [">", 10n, "<", 15n, "bd"],
    [">", 10n, "<=", 15n, "bcd"],
    [">=", 20n, "<", 30n, "bcd"],
    [">", 40n, "<", 50n, "d"],
    [">", 14n, "<", 12n, "bd"],
  ] as const)("%s %s and %s %s", async (above, low, below, high, files) => {
    await table(INT, FILES);
    const ends = [compare(INT, above, low), compare(INT, below, high)];
    expect(await found(allOf(ends))).toBe(files);
    expect(await found(allOf(ends.reverse()))).toBe(files);
  });

  test("each count, however many there are, and of whichever columns", async () => {
    await table(INT, FILES);
    const ends = [compare(INT, ">", 10n), compare(INT, ">", 20n), compare(INT, "<", 45n), compare(INT, "<", 30n)];
    expect(await found(allOf(ends))).toBe("cd");
    expect(await found(allOf([...ends, compare(INT, "=", 5n)]))).toBe("d");
    expect(await found(allOf([compare(INT, ">", 30n), compare(INT, "<", 0n, 1)]))).toBe("d");
    expect(await found(allOf([compare(INT, ">", 30n), compare(TEXT, "<", bytes("a"))]))).toBe("cd");
  });

  test("leave out what NaN alone would keep", async () => {
    await table(FLOAT, [{ min: 0, max: 1, hasNaN: true }, { min: 5, max: 6 }, { hasNaN: true }]);
    expect(await found(allOf([compare(FLOAT, ">", 4), compare(FLOAT, "<", 5.5)]))).toBe("bc");
    expect(await found(allOf([compare(FLOAT, ">", 4), compare(FLOAT, ">", 5.5)]))).toBe("abc");
  });
});

describe("a changed schema", () => {
  test("bounds of the type that a column was widened from say nothing", async () => {
    await table(INT, [{ min: 0n, max: 10n }]);
    const schema = schemaOf({ kind: "decimal", precision: 38, scale: 2 });
    await catalog.commit(
      draft(
        { op: "schema", table: "t", version: 2, schema, lastFieldId: 1 },
        append("t", "b2", [], {
          rows: 1,
          schemaVersion: 2,
          files: [dataFile("z", { schemaVersion: 2, columns: [statistics(1, { min: 100n, max: 200n })] })],
        }),
      ),
    );
    expect(await found(compare(schema.fields[0]!.type, "=", 500n))).toBe("a");
    expect(await found(compare(schema.fields[0]!.type, "=", 150n))).toBe("az");
  });

  test("a file of before a column was added has only nulls in it", async () => {
    await table(INT, [{ min: 0n, max: 10n }]);
    await catalog.commit(
      draft(
        { op: "schema", table: "t", version: 2, schema: schemaOf(INT, INT), lastFieldId: 2 },
        append("t", "b2", [], {
          rows: 2,
          schemaVersion: 2,
          files: [
            dataFile("y", { schemaVersion: 2, columns: [statistics(1), statistics(2, { min: 1n, max: 1n })] }),
            dataFile("z", { schemaVersion: 2, columns: [statistics(1), statistics(2, { nullCount: 1 })] }),
          ],
        }),
      ),
    );
    const added = { id: 2, type: INT };
    expect(await found(compare(INT, "<>", 7n, 2))).toBe("y");
    expect(await found({ kind: "null", field: added })).toBe("az");
    expect(await found({ kind: "present", field: added })).toBe("y");
  });
});

describe("nulls", () => {
  test("some, all, none, and not told", async () => {
    await table(INT, [
      { valueCount: 5, nullCount: 2, min: 1n, max: 1n },
      { valueCount: 5, nullCount: 5 },
      { valueCount: 5, nullCount: 0, min: 1n, max: 1n },
    ]);
    const field = { id: 1, type: INT };
    expect(await found({ kind: "null", field })).toBe("ab");
    expect(await found({ kind: "present", field })).toBe("ac");
  });

  test("of a file without statistics may be any", async () => {
    await catalog.commit(
      draft(
        create("t", "t", { schema: schemaOf(INT), lastFieldId: 1 }),
        append("t", "b1", [], { rows: 1, files: [dataFile("a")] }),
      ),
    );
    const field = { id: 1, type: INT };
    expect(await found({ kind: "null", field })).toBe("a");
    expect(await found({ kind: "present", field })).toBe("a");
    expect(await found(compare(INT, "=", 1n))).toBe("a");
  });
});

describe("AND and OR", () => {
  beforeEach(() =>
    table(INT, [
      { min: 0n, max: 10n },
      { min: 10n, max: 20n },
      { min: 30n, max: 30n },
    ]),
  );

  test("choose, and without operands say all and nothing", async () => {
    const low = compare(INT, "<", 10n);
    const high = compare(INT, ">", 20n);
    expect(await found(anyOf([low, high]))).toBe("ac");
    expect(await found(allOf([compare(INT, ">=", 10n), compare(INT, "<=", 20n)]))).toBe("ab");
    expect(await found(ANY_FILE)).toBe("abc");
    expect(await found({ kind: "or", operands: [] })).toBe("");
    expect(await found(anyOf([low, ANY_FILE]))).toBe("abc");
    expect(await found(allOf([low, ANY_FILE]))).toBe("a");
  });

  test("as deep and as long as a program can make them, say nothing rather than fail", async () => {
    let deep = compare(INT, "<", 10n);
    for (let i = 0; i < 500; i++) deep = { kind: i % 2 ? "and" : "or", operands: [deep, compare(INT, "=", 5n)] };
    // What stands above the limit still counts.
    expect(await found(deep)).toBe("a");
    const long = anyOf(Array.from({ length: 20_000 }, (_, i) => compare(INT, ">", BigInt(i + 1000))));
    expect(await found(long)).toBe("abc");
  });

  test("long lists of values choose by groups of neighbours", async () => {
    const list = (values: readonly bigint[]): FilePredicate => anyOf(values.map((value) => compare(INT, "=", value)));
    // Shuffled, for a list need not be in order: 0 to 9 and 20 to 29. Of groups of two, none is from both.
    const values = [...Array(10).keys()].flatMap((i) => [BigInt(29 - i), BigInt(i)]);
    expect(await found(list(values.filter((value) => value !== 20n && value !== 29n)))).toBe("a");
    expect(await found(list([...values, 30n, 15n]))).toBe("abc");
    expect(await found(anyOf([list([12n, 13n]), compare(INT, "<", 5n)]))).toBe("ab");
    expect(await found(list(Array.from({ length: 20_000 }, (_, i) => BigInt(i + 31))))).toBe("");
    expect(await found(list(Array.from({ length: 20_000 }, (_, i) => BigInt(i + 30))))).toBe("c");
  });
});

describe("buckets", () => {
  /** Iceberg's hash of the int64 34 is 2017239379: bucket 3 of 16, and of 4. */
  const HASH_OF_34 = 2_017_239_379;

  async function bucketed(type: DataType, partitions: readonly (readonly (bigint | null)[])[]): Promise<void> {
    await catalog.commit(
      draft(
        create("t", "t", {
          schema: schemaOf(INT, type),
          lastFieldId: 2,
          create: { name: "t", folder: "t", partitionBy: ["c1", "bucket(16, c2)"], orderBy: [] },
        }),
        append("t", "b1", [], {
          rows: partitions.length,
          files: partitions.map((partition, i) => dataFile("abcdefgh"[i]!, { partition })),
        }),
      ),
    );
  }
  const rest = BigInt(HASH_OF_34 % 16);
  const column = { id: 2, type: INT };

  test("of other values are left out for =, and for nothing else", async () => {
    await bucketed(INT, [
      [1n, rest],
      [1n, rest + 1n],
      [2n, rest],
      [1n, null],
    ]);
    expect(rest).toBe(3n);
    expect(await found(compare(INT, "=", 34n, 2))).toBe("ac");
    expect(await found(anyOf([compare(INT, "=", 34n, 2), compare(INT, "=", 34n, 1)]))).toBe("abcd");
    expect(await found(allOf([compare(INT, "=", 34n, 2), compare(INT, "=", 1n, 1)]))).toBe("ac");
    for (const other of ["<>", "<", "<=", ">", ">="] as const) {
      expect(await found(compare(INT, other, 34n, 2))).toBe("abcd");
    }
    expect(await found({ kind: "null", field: column })).toBe("abcd");
  });

  test("of a column that was widened count while values keep their hash", async () => {
    const [small, int32]: DataType[] = [{ kind: "uint16" }, { kind: "int32" }];
    await bucketed(small!, [
      [1n, rest],
      [1n, rest + 1n],
    ]);
    const widen = async (type: DataType, version: number): Promise<void> => {
      await catalog.commit(draft({ op: "schema", table: "t", version, schema: schemaOf(INT, type), lastFieldId: 2 }));
    };
    await widen(int32!, 2);
    expect(await found(compare(int32!, "=", 34n, 2))).toBe("a");
    const uint64: DataType = { kind: "uint64" };
    await widen(uint64, 3);
    expect(await found(compare(uint64, "=", 34n, 2))).toBe("ab");
  });
});

test("a dropped table has no files, and a snapshot has its own", async () => {
  await table(INT, [{ min: 0n, max: 10n }]);
  await catalog.commit(
    draft(
      append("t", "b2", [], { rows: 1, files: [dataFile("z", { columns: [statistics(1, { min: 5n, max: 5n })] })] }),
    ),
  );
  const where = compare(INT, "=", 5n);
  expect(await found(where)).toBe("az");
  expect((await catalog.files("t", 1, { where })).map(({ key }) => key)).toEqual(["a"]);
  await catalog.commit(draft({ op: "drop", table: "t" }));
  expect(await found(where)).toBe("");
});
