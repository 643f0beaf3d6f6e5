import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type PartitionValue,
  parsePartitionBy,
  parseType,
  partitionKey,
  partitionPath,
  routePartitions,
  type Schema,
  tableFolder,
} from "../src/index.js";
import { generatedBatches } from "./arbitrary-batches.js";
import { batchOf, type Value } from "./column-builder.js";

const schemaOf = (types: Readonly<Record<string, string>>): Schema => ({
  fields: Object.entries(types).map(([name, type], i) => ({ id: i + 1, name, type: parseType(type), nullable: true })),
});

function route(schema: Schema, expressions: readonly string[], rows: readonly { readonly [name: string]: Value }[]) {
  const specs = expressions.map((expression) => parsePartitionBy(expression, schema));
  return routePartitions(batchOf(schema, rows), specs).map(({ values, rows }) => [[...values], [...rows]]);
}

describe("routePartitions", () => {
  test("keys are typed tuples: where one text ends and the next begins counts, and null is not the text null", () => {
    const schema = schemaOf({ a: "string", b: "string" });
    const rows = [
      { a: "a b", b: "c" },
      { a: "a", b: "b c" },
      { a: null, b: "" },
      { a: "null", b: "" },
      { a: "", b: null },
      { a: "a b", b: "c" },
    ];
    expect(route(schema, ["a", "b"], rows)).toEqual([
      [
        ["a b", "c"],
        [0, 5],
      ],
      [["a", "b c"], [1]],
      [[null, ""], [2]],
      [["null", ""], [3]],
      [["", null], [4]],
    ]);
  });

  test("text is never a number or a date", () => {
    for (const values of [
      ["00420", "7B420", "420"],
      ["-0", "+1", "1", "2", "0"],
      ["2031-1-1", "2031-02-03", "n/a", "2031-01-01"],
      ["u/v", "50%", "x=y", "h:m", "p+q", "u%2Fv", "sp ace", "ñ", ".", ".."],
      ["__proto__", "constructor", "'); COPY (SELECT 1) TO 'x"],
    ]) {
      const groups = route(
        schemaOf({ code: "string" }),
        ["code"],
        values.map((code) => ({ code })),
      );
      expect(groups).toEqual(values.map((value, i) => [[value], [i]]));
    }
  });

  test("all NaN are one partition, and so are −0 and 0", () => {
    const rows = [Number.NaN, 0, -0, Number.NaN, 1].map((f) => ({ f }));
    expect(route(schemaOf({ f: "float64" }), ["f"], rows)).toEqual([
      [[Number.NaN], [0, 3]],
      [[0], [1, 2]],
      [[1], [4]],
    ]);
    expect(route(schemaOf({ f: "float64" }), ["f"], [{ f: -0 }])).toEqual([[[0], [0]]]);
  });

  test("values come as documented for each type", () => {
    const types: [string, Value, PartitionValue][] = [
      ["bool", false, false],
      ["int8", -5, -5n],
      ["uint64", 2n ** 64n - 1n, 2n ** 64n - 1n],
      ["int64", -(2n ** 63n), -(2n ** 63n)],
      ["float32", 0.5, 0.5],
      ["decimal(20,2)", -7005n, -7005n],
      ["date", -1, -1n],
      ["time", 1n, 1n],
      ["timestamptz", 1_930_000_000_123_456n, 1_930_000_000_123_456n],
      ["binary", Uint8Array.of(0, 255), "00ff"],
      ["fixed(2)", Uint8Array.of(1, 2), "0102"],
      [
        "uuid",
        Uint8Array.from(Buffer.from("f79c3e09677c4bbda4793f349cb785e7", "hex")),
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
      ],
    ];
    for (const [type, value, expected] of types) {
      expect(route(schemaOf({ c: type }), ["c"], [{ c: value }, { c: null }])).toEqual([
        [[expected], [0]],
        [[null], [1]],
      ]);
    }
  });

  test("no rows, no specs, and a column that has no type yet", () => {
    const schema = schemaOf({ a: "int32" });
    expect(route(schema, ["a"], [])).toEqual([]);
    expect(route(schema, [], [{ a: 1 }, { a: 2 }])).toEqual([[[], [0, 1]]]);
    const unknown: Schema = {
      fields: [...schema.fields, { id: 2, name: "u", type: { kind: "unknown" }, nullable: true }],
    };
    const specs = ["u", "a"].map((expression) => parsePartitionBy(expression, unknown));
    const groups = routePartitions(batchOf(schema, [{ a: 1 }, { a: 1 }]), specs);
    expect(groups.map(({ values, rows }) => [values, [...rows]])).toEqual([
      [
        [null, 1n],
        [0, 1],
      ],
    ]);
  });

  test("covers each row once, and rows share a group exactly when their values are equal", () => {
    fc.assert(
      fc.property(generatedBatches({ depth: 0, maxRows: 60 }), ({ schema, rows }) => {
        const usable = schema.fields.filter((field) => field.type.kind !== "json");
        const specs = usable.map((field) => parsePartitionBy(field.name, schema));
        const groups = routePartitions(batchOf(schema, rows), specs);
        const expected = new Map<string, number[]>();
        rows.forEach((row, i) => {
          const key = usable
            .map(({ name, type }) => {
              const value = row[name] ?? null;
              if (value === null) return "null";
              if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
              if (type.kind === "float32" || type.kind === "float64") return String((value as number) + 0);
              return typeof value === "string" ? JSON.stringify(value) : String(value);
            })
            .join("|");
          expected.set(key, [...(expected.get(key) ?? []), i]);
        });
        expect(groups.map((group) => [...group.rows])).toEqual([...expected.values()]);
        expect(new Set(groups.map((group) => partitionKey(group.values))).size).toBe(groups.length);
      }),
    );
  });

  test("many distinct tuples", () => {
    const schema = schemaOf({ a: "int32", b: "string" });
    const rows = Array.from({ length: 3000 }, (_, i) => ({ a: i % 1500, b: `s${i % 2000}` }));
    const groups = route(schema, ["a", "b"], rows);
    // The pair repeats after lcm(1500, 2000) = 6000 rows, so that all are distinct.
    expect(groups.map(([, at]) => at)).toEqual(rows.map((_, i) => [i]));
  });
});

test("partition keys tell null, NaN, infinities, integers and texts apart", () => {
  const values = [null, Number.NaN, Number.POSITIVE_INFINITY, 1n, 1, "1", "null", "NaN", true, "true", ""];
  expect(new Set(values.map((value) => partitionKey([value]))).size).toBe(values.length);
  expect(partitionKey([Number.NaN])).toBe(partitionKey([Number.NaN]));
  expect(partitionKey(["a", "b"])).not.toBe(partitionKey(["a,b"]));
});

/** What every file system and store takes as one folder name. */
function expectSafe(component: string): void {
  expect(component).toMatch(/^[A-Za-z0-9_%=~.-]+$/);
  expect(component).not.toMatch(/^\.|\.$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i);
  expect(component.length).toBeLessThanOrEqual(255);
}

describe("partitionPath", () => {
  const schema = schemaOf({
    code: "string",
    ts: "timestamptz",
    d: "date",
    id: "int64",
    x: "decimal(9,2)",
    f: "float64",
    "a/b": "bool",
    "con.x": "time",
  });
  const pathOf = (expression: string, value: PartitionValue): string =>
    partitionPath([parsePartitionBy(expression, schema)], [value]);

  test.each([
    ["day(ts)", 22_313n, "ts_day=2031-02-03"],
    ["month(ts)", 733n, "ts_month=2031-02"],
    ["year(ts)", 61n, "ts_year=2031"],
    ["hour(ts)", 535_516n, "ts_hour=2031-02-03-04"],
    ["month(ts)", -1n, "ts_month=1969-12"],
    ["d", 22_313n, "d=2031-02-03"],
    ["ts", 1_930_000_000_123_456n, "ts=2031-02-27T23%3A06%3A40.123456Z"],
    ["bucket(16, id)", 5n, "id_bucket_16=5"],
    ["truncate(100, id)", -200n, "id_truncate_100=-200"],
    ["x", -7005n, "x=-70.05"],
    ["f", Number.NaN, "f=NaN"],
    ["f", 1e21, "f=1e%2B21"],
    ['"a/b"', true, "a%2Fb=true"],
    ['"con.x"', 0n, "%63on.x=00%3A00%3A00.000000"],
    ["code", null, "code=__HIVE_DEFAULT_PARTITION__"],
    ["code", "__HIVE_DEFAULT_PARTITION__", "code=%5F_HIVE_DEFAULT_PARTITION__"],
    ["code", "", "code="],
    ["code", "u/v", "code=u%2Fv"],
    ["code", "u%2Fv", "code=u%252Fv"],
    ["code", "50%", "code=50%25"],
    ["code", "x=y", "code=x%3Dy"],
    ["code", "ñ", "code=%C3%B1"],
    ["code", "sp ace", "code=sp%20ace"],
    ["code", ".", "code=%2E"],
    ["code", "..", "code=%2E%2E"],
    ["code", "a.b", "code=a.b"],
    ["code", "00420", "code=00420"],
    ["code", "__proto__", "code=__proto__"],
  ])("%s of %s is %s", (expression, value, expected) => {
    expect(pathOf(expression, value)).toBe(expected);
    expectSafe(expected);
  });

  test("two columns", () => {
    const specs = ["code", "day(ts)"].map((expression) => parsePartitionBy(expression, schema));
    expect(partitionPath(specs, ["a", 0n])).toBe("code=a/ts_day=1970-01-01");
    expect(partitionPath([], [])).toBe("");
  });

  const hostile = [
    "../../out",
    "..",
    "/abs",
    "a\u0000b",
    "C:\\x",
    "con",
    "%2e%2e%2f",
    "x".repeat(300),
    "",
    " ",
    "a.",
    "nul.txt",
    "~",
    "𝔘".repeat(100),
  ];

  test("hostile values stay one safe folder each", () => {
    const paths = hostile.map((value) => pathOf("code", value));
    paths.forEach(expectSafe);
    expect(new Set(paths).size).toBe(hostile.length);
  });

  test("distinct values have distinct folders, all safe, also long ones", () => {
    const long = fc.string({ unit: "binary", minLength: 60, maxLength: 300 });
    const value = fc.oneof(
      fc.string({ unit: "binary", maxLength: 8 }),
      long,
      fc.constantFrom(null, "__HIVE_DEFAULT_PARTITION__", ...hostile),
    );
    fc.assert(
      fc.property(value, value, (a, b) => {
        expectSafe(pathOf("code", a));
        if (a !== b) expect(pathOf("code", a)).not.toBe(pathOf("code", b));
        if (typeof a === "string" && a.length > 250) expect(pathOf("code", `${a}1`)).not.toBe(pathOf("code", `${a}2`));
      }),
    );
  });

  test("short folders decode to their value", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 12 }), (value) => {
        expect(decodeURIComponent(pathOf("code", value))).toBe(`code=${value}`);
      }),
    );
  });

  test("a whole path leaves room in a key of 1,024 bytes, whatever the number of columns", () => {
    const specs = Array.from({ length: 10 }, () => parsePartitionBy("code", schema));
    const path = partitionPath(
      specs,
      Array.from({ length: 10 }, (_, i) => `${i}${"é".repeat(200)}`),
    );
    expect(path.length).toBeLessThan(700);
    expect(new Set(path.split("/")).size).toBe(10);
  });
});

describe("tableFolder", () => {
  test.each([
    ["events", "events~7f"],
    ["ns.events", "ns.events~7f"],
    ['a"; DROP TABLE b; --', "a%22%3B%20DROP%20TABLE%20b%3B%20--~7f"],
    ["it's", "it%27s~7f"],
    ["x-y.z", "x-y.z~7f"],
    ["../t", "%2E.%2Ft~7f"],
    ["con", "%63on~7f"],
    ["Aux.log", "%41ux.log~7f"],
    [".", "%2E~7f"],
    ["_eider", "%5Feider~7f"],
    ["été", "%C3%A9t%C3%A9~7f"],
    ["__proto__", "%5F_proto__~7f"],
  ])("%s is %s", (name, expected) => {
    expect(tableFolder(name, "7f")).toBe(expected);
    expectSafe(expected);
  });

  test("is the plain name where no table had it before", () => {
    expect(tableFolder("ns.events")).toBe("ns.events");
    expect(tableFolder("_eider")).toBe("%5Feider");
  });

  test("is distinct for distinct names, and with distinct ids also where case does not count", () => {
    const name = fc.string({ unit: "binary", minLength: 1, maxLength: 255 });
    fc.assert(
      fc.property(name, name, (a, b) => {
        expectSafe(tableFolder(a, "1"));
        if (a !== b) expect(tableFolder(a, "1")).not.toBe(tableFolder(b, "1"));
        expect(tableFolder(a, "1").toLowerCase()).not.toBe(tableFolder(a.toUpperCase(), "2").toLowerCase());
      }),
    );
  });
});
