import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SchemaMisfit } from "../src/parser.js";
import { assignFieldIds, type DataType, type Schema } from "../src/schema.js";
import { inferSchema, parse, schemaOf, types, utf8 } from "./text.js";

/** JSON text of a value with random whitespace and escapes. */
function written(value: unknown, random: () => number): string {
  const space = (): string => ["", "", "", " ", "\t", " \r "][Math.floor(random() * 6)]!;
  const text = (s: string): string =>
    `"${Array.from(s, (c) => {
      if (random() < 0.1)
        return Array.from({ length: c.length }, (_, i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, "0")}`).join(
          "",
        );
      return JSON.stringify(c).slice(1, -1);
    }).join("")}"`;
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return `[${value.map((v) => space() + written(v, random) + space()).join(",")}${space()}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(
      ([k, v]) => `${space()}${text(k)}${space()}:${space()}${written(v, random)}${space()}`,
    );
    return `{${members.join(",")}${space()}}`;
  }
  return JSON.stringify(value);
}

const key = fc.constantFrom("a", "b", "c", "dd", "long key with spaces", "é", "__proto__", 'q"q', "x.y");
const leaf = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1, "", "x", "2031-02-03T04:05:06Z"),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
  fc.string({ unit: "binary", maxLength: 12 }),
);
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(key, tie("value"), { maxKeys: 4 }),
  ),
})).value;
const row = fc.dictionary(key, value, { maxKeys: 5 });

/** Numbers in [0, 1) from a seed: a linear congruential generator, good enough to place blanks. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Rows as NDJSON text, each with its value. */
const table = fc.tuple(fc.array(row, { maxLength: 8 }), fc.nat()).map(([rows, seed]) => {
  const random = generator(seed);
  return { rows, lines: rows.map((r) => written(r, random).replaceAll("\r", " ")) };
});

/** Tables of one column in which the values meet that inference has to tell apart. */
const narrow = fc
  .array(
    fc.constantFrom(
      ...["1", "-3", "1.0", "1e2", "-0", "0.5", "1e-3", "1e30", "123456789.125", "300", "5000000000"],
      ...["9007199254740992", "9007199254740993", "9007199254740994", "9223372036854775808", "18446744073709551616"],
      ...[`1${"0".repeat(37)}`, `1${"0".repeat(38)}`, `0.${"1".repeat(30)}`, "1e400"],
      ...[
        '"x"',
        '"2031-02-03T04:05:06Z"',
        '"2031-02-03T04:05:06+05:30"',
        '"2031-02-03T04:05:06"',
        '""',
        "true",
        "null",
      ],
      ...[
        "{}",
        "[]",
        "[1]",
        "[null]",
        "[[]]",
        '["x"]',
        "[1.5]",
        '{"k":1}',
        '{"K":2}',
        '{"k":"x"}',
        '{"k":{}}',
        '{"K":1,"k":2}',
      ],
      ...['1,"z":1', 'null,"z":1', '"x","Z":null', '1,"n":"x"', '"x","N":1', '{"k":1,"k":true}', "01"],
    ),
    { maxLength: 4 },
  )
  .map((values) => values.map((text) => `{"n":${text}}`));

/** Whether a stored value is the parsed one, in the way that its type has it. */
function same(type: DataType, stored: unknown, parsed: unknown): boolean {
  if (parsed === null || parsed === undefined) return stored === null;
  switch (type.kind) {
    case "json":
      return JSON.stringify(JSON.parse(stored as string)) === JSON.stringify(parsed);
    case "timestamptz":
      return new Date(stored as string).getTime() === new Date(parsed as string).getTime();
    case "int64":
    case "float64":
      return Number(stored) === parsed;
    case "decimal":
      return Number(stored) === parsed;
    case "list":
      return (
        Array.isArray(parsed) &&
        (stored as unknown[]).length === parsed.length &&
        parsed.every((v, i) => same(type.element.type, (stored as unknown[])[i], v))
      );
    case "struct":
      return sameFields(type, stored, parsed);
    default:
      return stored === parsed;
  }
}

function sameFields({ fields }: Schema, stored: unknown, parsed: unknown): boolean {
  const own = (object: unknown, name: string): unknown => Object.getOwnPropertyDescriptor(object, name)?.value;
  return fields.every(({ name, type }) => {
    const got = own(stored, name);
    return got === undefined ? holdsNothing(own(parsed, name)) : same(type, got, own(parsed, name));
  });
}

/** Values that an unknown column takes, at any depth. */
function holdsNothing(parsed: unknown): boolean {
  if (parsed === null || parsed === undefined) return true;
  return typeof parsed === "object" && Object.values(parsed).every(holdsNothing);
}

const LONE_SURROGATE = /\p{Surrogate}/u;

function hasLoneSurrogate(parsed: unknown): boolean {
  if (typeof parsed === "string") return LONE_SURROGATE.test(parsed);
  if (typeof parsed !== "object" || parsed === null) return false;
  return Object.entries(parsed).some(([k, v]) => LONE_SURROGATE.test(k) || hasLoneSurrogate(v));
}

const BASES = [
  "int8",
  "uint8",
  "int64",
  "uint64",
  "float32",
  "float64",
  "decimal(10,2)",
  "decimal(38,10)",
  "string",
  "json",
  "int64!",
];

const runs = { numRuns: 100 };

describe("laws of JSON", () => {
  test("the inferred schema takes every row, with the values of JSON.parse", () => {
    fc.assert(
      fc.property(table, ({ rows, lines }) => {
        const schema = assignFieldIds(inferSchema(lines.join("\n")));
        const parsed = parse(lines.join("\n"), schema, { unknownFields: "misfit", valueMisfits: "misfit" });
        expect(parsed.rejects).toEqual([]);
        expect(parsed.rows).toHaveLength(rows.length);
        for (const [i, line] of lines.entries()) {
          if (!sameFields(schema, parsed.rows[i], JSON.parse(line))) {
            expect({ schema: types(schema), got: parsed.rows[i] }).toBe(line);
          }
        }
      }),
      runs,
    );
  });

  test("inference does not depend on the order of rows or on chunks", () => {
    const sorted = (schema: Schema): unknown => {
      const sort = (type: DataType): unknown =>
        type.kind === "struct"
          ? Object.fromEntries(type.fields.map((f) => [`.${f.name}`, sort(f.type)] as const).sort())
          : type.kind === "list"
            ? [sort(type.element.type)]
            : type;
      return sort({ kind: "struct", fields: schema.fields });
    };
    fc.assert(
      fc.property(
        table.chain(({ lines }) =>
          fc.tuple(fc.constant(lines), fc.shuffledSubarray(lines, { minLength: lines.length })),
        ),
        ([lines, shuffled]) => {
          const schema = inferSchema(lines.join("\n"));
          expect(sorted(inferSchema(shuffled.join("\n")))).toEqual(sorted(schema));
          expect(inferSchema(`[${lines.join(",\n")}]`, { format: "json" })).toEqual(schema);
        },
      ),
      runs,
    );
  });

  test("what a parser with the schema of some rows takes does not change the schema of all", () => {
    fc.assert(
      fc.property(table, fc.nat(8), ({ lines }, cut) => {
        const sample = inferSchema(lines.slice(0, cut).join("\n"));
        try {
          parse(lines.join("\n"), assignFieldIds(sample), { unknownFields: "misfit", valueMisfits: "misfit" });
        } catch {
          return;
        }
        expect(inferSchema(lines.join("\n"))).toEqual(sample);
      }),
      runs,
    );
  });

  test("chunks of any split give the same batches and rejects", () => {
    fc.assert(
      fc.property(
        table,
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 }),
        fc.boolean(),
        ({ lines }, places, array) => {
          const broken = [...lines, '{"a":', '{"a":1}x'];
          const text = array ? `[${lines.join(",\n")}]` : broken.join("\r\n");
          const size = utf8(text).length;
          const cuts = places.map((place) => Math.floor(place * size)).sort((a, b) => a - b);
          const schema = assignFieldIds(inferSchema(text));
          const whole = parse(text, schema);
          const split = parse(text, schema, { cuts });
          expect(split.batches).toEqual(whole.batches);
          expect(split.rejects).toEqual(whole.rejects);
        },
      ),
      runs,
    );
  });

  test("the same where values barely differ", () => {
    const form = new Set(["bad_json", "duplicate_key", "number_out_of_range"]);
    fc.assert(
      fc.property(narrow, fc.nat(4), fc.option(fc.constantFrom(...BASES), { nil: undefined }), (lines, cut, type) => {
        const text = lines.join("\n");
        const base =
          type === undefined ? undefined : schemaOf({ [type.endsWith("!") ? "n!" : "n"]: type.replace("!", "") });
        const options = base ? { base } : {};
        const all = inferSchema(text, options);
        // A new field is spelled as it first appears.
        const folded = (schema: Schema): string => JSON.stringify(types(schema)).toLowerCase();
        expect(folded(inferSchema(lines.toReversed().join("\n"), options))).toBe(folded(all));
        const { rejects } = parse(text, assignFieldIds(all));
        // A column that has a type may refuse values of other kinds; a new one takes all.
        if (!base) for (const { code } of rejects) expect(form).toContain(code);
        const sample = base ?? assignFieldIds(inferSchema(lines.slice(0, cut).join("\n")));
        try {
          parse(text, sample, { unknownFields: "misfit", valueMisfits: "misfit" });
        } catch (error) {
          if (error instanceof SchemaMisfit) return;
          throw error;
        }
        expect(types(all)).toEqual(types(sample));
      }),
      { numRuns: 800 },
    );
  });

  const schema = assignFieldIds({
    fields: inferSchema('{"a":[1.5,[null]],"b":{"c":1,"a":"x","b":true},"c":"","dd":[{"a":0}],"é":0.5,"x.y":{"a":[]}}')
      .fields,
  });

  test("accepts what JSON.parse accepts, and nothing else", () => {
    const alphabet = fc.constantFrom(...'{}[]":,\\ \t\r09.-+eEu\u0001truefalsnu'.split(""), "\\u", '"a"', "é", "/");
    const mutation = fc.tuple(fc.nat(), fc.constantFrom("insert", "remove", "replace"), alphabet);
    fc.assert(
      fc.property(table, fc.array(mutation, { minLength: 1, maxLength: 3 }), ({ lines }, mutations) => {
        let text = lines[0] ?? "{}";
        for (const [place, kind, character] of mutations) {
          const at = place % (text.length + 1);
          text = text.slice(0, at) + (kind === "remove" ? "" : character) + text.slice(kind === "insert" ? at : at + 1);
        }
        fc.pre(text.trim() !== "" && !text.trim().startsWith("[") && !LONE_SURROGATE.test(text));
        let accepted: unknown;
        try {
          accepted = JSON.parse(text);
        } catch {
          accepted = undefined;
        }
        const isRow = typeof accepted === "object" && accepted !== null && !Array.isArray(accepted);
        // JSON.parse takes escaped halves of surrogate pairs, which UTF-8 cannot express.
        fc.pre(!isRow || !hasLoneSurrogate(accepted));
        for (const unknownFields of ["ignore", "reject"] as const) {
          const { rejects } = parse(text, schema, { unknownFields });
          const bad = rejects.some(({ code }) => code === "bad_json");
          const skipped = rejects.some(({ code }) => code === "number_out_of_range");
          if (!skipped) expect({ text, bad }).toEqual({ text, bad: !isRow });
        }
      }),
      { numRuns: 800 },
    );
  });
});
