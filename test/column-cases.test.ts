/**
 * Inputs from public bug reports about types and Parquet (named by number), as a user would append them: each with the
 * result that must come back through SQL and through hyparquet, a second reader.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type AppendOptions, Lake, type Source, type Table, type TableOptions } from "eider";
import { parquetMetadata } from "hyparquet";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import { readParquet } from "./support/hyparquet.js";
import { VECTORS } from "./vectors.js";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

type Input =
  | Source<Record<string, unknown>>
  | { readonly source: Source<Record<string, unknown>>; readonly options: AppendOptions };

class Opened implements AsyncDisposable {
  constructor(
    readonly lake: Lake,
    readonly table: Table,
    readonly where: string,
  ) {}

  /** What hyparquet reads, file by file. */
  async second(): Promise<Record<string, unknown>[]> {
    const rows: Record<string, unknown>[] = [];
    for (const { key } of await this.table.files()) rows.push(...(await readParquet(join(this.where, key))));
    return rows;
  }

  /** The columns of the first file as hyparquet sees them: name, repetition, converted type, children. */
  async nodes(): Promise<string[]> {
    const [file] = await this.table.files();
    const { schema } = parquetMetadata(Uint8Array.from(readFileSync(join(this.where, file!.key))).buffer);
    return schema
      .slice(1)
      .map(({ name, repetition_type, converted_type }) =>
        [repetition_type?.toLowerCase(), name, converted_type && `(${converted_type})`].filter(Boolean).join(" "),
      );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lake.close();
  }
}

async function open(inputs: readonly Input[], options?: TableOptions): Promise<Opened> {
  const where = temporaryFolder();
  const lake = await Lake.open(where, FILES);
  const table = lake.table("t", options);
  for (const input of inputs) {
    if (input instanceof Object && "source" in input) await table.append(input.source, input.options);
    else await table.append(input);
  }
  return new Opened(lake, table, where);
}

describe("inference", () => {
  const odd = [{ n: 1.5 }, { n: null }, { n: 8, late: "z" }];
  const common = Array.from({ length: 25_000 }, () => ({ n: 7 }));
  const orders = {
    "at the end": [...common, ...odd],
    "at the start": [...odd, ...common],
    "in the middle": [...common.slice(0, 12_500), ...odd, ...common.slice(12_500)],
  };
  const forms: Record<string, (rows: readonly object[]) => Input> = {
    rows: (rows) => rows as Record<string, unknown>[],
    NDJSON: (rows) => bytes(rows.map((row) => JSON.stringify(row)).join("\n")),
    "a JSON array": (rows) => ({ source: bytes(JSON.stringify(rows)), options: { format: "json" } }),
    CSV: (rows) => ({
      source: bytes(
        `n,late\n${rows.map((row) => `${(row as { n: number | null }).n ?? ""},${"late" in row ? row.late : ""}`).join("\n")}\n`,
      ),
      options: { format: "csv", csv: { nullValues: [""] } },
    }),
  };
  for (const [form, input] of Object.entries(forms)) {
    it.each(Object.entries(orders))(`D01: odd values %s of ${form}`, async (_place, rows) => {
      await using opened = await open([input(rows)]);
      expect(
        await opened.lake.sql(
          "SELECT sum(n) s, typeof(any_value(n)) t, count(*) - count(n) AS nulls, list(late) FILTER (late IS NOT NULL) l FROM t",
        ),
      ).toEqual([{ s: 175_009.5, t: "DOUBLE", nulls: 1n, l: ["z"] }]);
      const second = await opened.second();
      expect([second.length, second.filter(({ late }) => late === "z").length]).toEqual([25_003, 1]);
      // Never 1: refused, naming the row.
      for (const more of [bytes('{"n":2}\n{"n":true}\n'), [{ n: 2 }, { n: true }]]) {
        await expect(opened.table.append(more)).rejects.toMatchObject({ code: "rejected_rows", rows: [{ line: 2 }] });
      }
    });
  }

  it("D02: integers beyond 2^53 and 2^63, one a batch and all in one", async () => {
    const ids = [
      "9007199254740993",
      "9223372036854775807",
      "9223372036854775808",
      "18446744073709551616",
      "-9223372036854775809",
    ];
    const text = ids.map((id) => bytes(`{"id":${id}}`));
    const forms: Input[][] = [
      text,
      [bytes(ids.map((id) => `{"id":${id}}`).join("\n"))],
      ids.map((id) => [{ id: BigInt(id) }]),
      [ids.map((id) => ({ id: BigInt(id) }))],
    ];
    for (const inputs of forms) {
      await using opened = await open(inputs);
      const found = await opened.lake.sql<{ id: string }>("SELECT CAST(id AS VARCHAR) AS id FROM t");
      expect(found.map(({ id }) => id).sort()).toEqual([...ids].sort());
    }
    await using opened = await open([[{ id: 1n }]]);
    // Rows have no lines.
    await expect(opened.table.append([{ id: 1 }, { id: "x" }])).rejects.toThrow("the first is row 2:");
    await expect(opened.table.append(bytes('{"id":1}\n{"id":"x"}\n'))).rejects.toThrow("the first is line 2:");
    for (const id of [2 ** 53, -(2 ** 60)]) {
      await expect(opened.table.append([{ id }])).rejects.toMatchObject({ code: "rejected_rows", rows: [{ line: 1 }] });
    }
  });

  it("D04: digit strings are strings", async () => {
    const rows = [
      { ord: "0042", flag: "true" },
      { ord: "30", flag: "false" },
      { ord: "-1e5", flag: "null" },
    ];
    for (const input of [rows, bytes(rows.map((row) => JSON.stringify(row)).join("\n"))]) {
      await using opened = await open([input]);
      expect(await opened.lake.sql("SELECT ord, flag, typeof(ord) a, typeof(flag) b FROM t")).toEqual(
        rows.map((row) => ({ ...row, a: "VARCHAR", b: "VARCHAR" })),
      );
      expect(await opened.second()).toEqual(rows);
      // Text stays text: true without quotes is no text.
      await expect(opened.table.append(bytes('{"flag":true}'))).rejects.toMatchObject({
        code: "rejected_rows",
        rows: [{ line: 1 }],
      });
    }
  });

  it("D05: empty objects", async () => {
    const batches = [
      [
        { a: 1, x: {} },
        { a: 2, x: { y: {} } },
      ],
      [{ a: 3, x: { y: { z: 4 } } }],
    ];
    const asText = batches.map((rows) => bytes(rows.map((row) => JSON.stringify(row)).join("\n")));
    for (const inputs of [batches, asText]) {
      await using opened = await open(inputs);
      expect(await opened.lake.sql("SELECT count(*) n, sum(a)::INT s FROM t")).toEqual([{ n: 3n, s: 6 }]);
      expect(await opened.lake.sql("SELECT a, x.y.z AS z FROM t ORDER BY a")).toEqual([
        { a: 1n, z: null },
        { a: 2n, z: null },
        { a: 3n, z: 4n },
      ]);
      expect((await opened.second()).map(({ a }) => a)).toEqual([1n, 2n, 3n]);
    }
    // Nothing but empty objects, lists and nulls: rows all the same.
    await using opened = await open([[{ a: 1, l: [], o: {}, n: null, lo: [{}], oo: { p: {} } }]]);
    expect(await opened.lake.sql("SELECT count(*) n FROM t")).toEqual([{ n: 1n }]);
    // Where no column has a value yet there is nothing to store: an error that says so, and no table.
    for (const empty of [bytes("{}\n{}\n"), bytes('{"x":{}}'), [{ x: {}, l: [], n: null }]]) {
      await using bare = await open([]);
      await expect(bare.table.append(empty)).rejects.toMatchObject({
        code: "no_columns",
        message: expect.stringMatching(/no column has a value yet|at least one with a known type/),
      });
      expect(await bare.lake.tables()).toEqual([]);
    }
  });

  it("D12: NaN, infinities, −0 and 1e400", async () => {
    await using opened = await open([
      [{ x: Number.NaN }, { x: Number.POSITIVE_INFINITY }, { x: Number.NEGATIVE_INFINITY }, { x: -0 }, { x: null }],
    ]);
    const counts =
      "SELECT count(*) FILTER (isnan(x)) nan, count(*) FILTER (isinf(x)) inf, count(*) FILTER (x = 0) zero, count(*) FILTER (x IS NULL) AS missing FROM t";
    expect(await opened.lake.sql(counts)).toEqual([{ nan: 1n, inf: 2n, zero: 1n, missing: 1n }]);
    // The rows that a filter must find whatever the statistics say.
    for (const [where, n] of [
      ["x > 100", 2n],
      ["x = 'nan'", 1n],
      ["x >= 0", 3n],
      ["x <= 0", 2n],
      ["x = -0.0", 1n],
      ["x < -1e308", 1n],
    ] as const) {
      expect([where, await opened.lake.sql(`SELECT count(*) n FROM t WHERE ${where}`)]).toEqual([where, [{ n }]]);
    }
    expect((await opened.second()).map(({ x }) => x)).toEqual([
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      -0,
      null,
    ]);
    for (const text of ['{"x":1e400}', '{"x":-1e400}']) {
      await expect(opened.table.append(bytes(text))).rejects.toMatchObject({
        code: "rejected_rows",
        rows: [{ line: 1 }],
      });
    }
    expect(await opened.lake.sql(counts)).toEqual([{ nan: 1n, inf: 2n, zero: 1n, missing: 1n }]);
  });

  it("D74: ids as keys", async () => {
    const events = Array.from({ length: 200 }, (_, i) => ({
      i,
      p: Object.fromEntries(Array.from({ length: 50 }, (_, k) => [`id_${i * 50 + k}`, i * 50 + k])),
    }));
    for (const input of [events, bytes(events.map((event) => JSON.stringify(event)).join("\n"))]) {
      await using opened = await open([bytes('{"i":-1,"before":"kept"}'), input]);
      const found = await opened.lake.sql<{ p: string }>("SELECT p::VARCHAR AS p FROM t WHERE i >= 0 ORDER BY i");
      expect(found.map(({ p }) => JSON.parse(p))).toEqual(events.map(({ p }) => p));
      expect(await opened.lake.sql('SELECT "before" AS b FROM t WHERE i = -1')).toEqual([{ b: "kept" }]);
    }
    // Below the cap their number decides nothing.
    for (const count of [24, 25, 199, 200]) {
      const row = Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
      await using opened = await open([[{ p: row }], bytes(JSON.stringify({ p: row }))]);
      expect(await opened.lake.sql(`SELECT typeof(p.k${count - 1}) t, p.k${count - 1} AS v FROM t`)).toEqual([
        { t: "BIGINT", v: BigInt(count - 1) },
        { t: "BIGINT", v: BigInt(count - 1) },
      ]);
    }
  });

  it("D74: the caps can be moved", async () => {
    const wide = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
    const forms = (row: object): { source: Source<Record<string, unknown>>; options: AppendOptions }[] => [
      { source: [row as Record<string, unknown>], options: {} },
      { source: bytes(JSON.stringify(row)), options: { format: "ndjson" } },
    ];
    for (const { source, options } of forms({ p: wide(11) })) {
      await using json = await open([{ source, options: { ...options, maxStructKeys: 10 } }]);
      expect(await json.lake.sql("SELECT p::VARCHAR AS p FROM t")).toEqual([{ p: JSON.stringify(wide(11)) }]);
      await using struct = await open([{ source, options: { ...options, maxStructKeys: 11 } }]);
      expect(await struct.lake.sql("SELECT p.k10 AS v FROM t")).toEqual([{ v: 10n }]);
    }
    const csv = { source: bytes("k0,k1,k2,k3,k4,k5\n0,1,2,3,4,5\n"), options: { format: "csv" } as AppendOptions };
    for (const { source, options } of [...forms(wide(6)), csv]) {
      await using opened = await open([{ source, options: { ...options, maxColumns: 6 } }]);
      expect(await opened.lake.sql("SELECT k5 FROM t")).toEqual([{ k5: 5n }]);
      await expect(open([{ source, options: { ...options, maxColumns: 5 } }])).rejects.toMatchObject({
        code: "too_many_fields",
        message: expect.stringMatching(/6 columns.*limit is 5/),
      });
    }
    // Beyond the cap nothing is committed, and what was there stays.
    await using opened = await open([[wide(3)]]);
    await expect(opened.table.append([wide(6)], { maxColumns: 5 })).rejects.toMatchObject({ code: "too_many_fields" });
    expect(await opened.lake.sql("SELECT * FROM t")).toEqual([{ k0: 0n, k1: 1n, k2: 2n }]);
  });

  it("D75: offsets in timestamps", async () => {
    const zoned = ["2031-02-03T04:05:06+05:30", "2031-02-03T04:05:06-03:30", "2031-02-02T22:35:06Z"];
    for (const input of [
      zoned.map((t) => ({ t })),
      bytes(zoned.map((t) => JSON.stringify({ t })).join("\n")),
      { source: bytes(`t\n${zoned.join("\n")}\n`), options: { format: "csv" } as const },
    ]) {
      await using opened = await open([input]);
      expect(await opened.lake.sql("SELECT typeof(t) AS type, t FROM t")).toEqual(
        ["2031-02-02T22:35:06.000000Z", "2031-02-03T07:35:06.000000Z", "2031-02-02T22:35:06.000000Z"].map((t) => ({
          type: "TIMESTAMP WITH TIME ZONE",
          t,
        })),
      );
      expect((await opened.second()).map(({ t }) => (t as Date).toISOString())).toEqual([
        "2031-02-02T22:35:06.000Z",
        "2031-02-03T07:35:06.000Z",
        "2031-02-02T22:35:06.000Z",
      ]);
      for (const t of ["2031-02-03T04:05:06", "2031-02-03", "2031-02-03T24:00:00Z", "2031-02-03T23:59:60Z"]) {
        for (const more of [[{ t }], bytes(JSON.stringify({ t }))]) {
          await expect(opened.table.append(more)).rejects.toMatchObject({ code: "rejected_rows", rows: [{ line: 1 }] });
        }
      }
    }
    await using asText = await open([
      { source: [{ t: zoned[0] }], options: { inferTimestamps: false } },
      { source: bytes(JSON.stringify({ t: zoned[1] })), options: { inferTimestamps: false } },
    ]);
    expect(await asText.lake.sql("SELECT t FROM t")).toEqual([{ t: zoned[0] }, { t: zoned[1] }]);
    // In one batch they are text, as they were written; dates in CSV stay dates.
    const mixed = [...zoned, "2031-02-03T04:05:06", "2031-02-03", "2031-02-03T24:00:00Z", "2031-02-03T23:59:60Z"];
    await using text = await open([mixed.map((t) => ({ t }))]);
    expect(await text.lake.sql("SELECT t FROM t")).toEqual(mixed.map((t) => ({ t })));
    await using dates = await open([{ source: bytes("d\n2031-02-03\n2031-12-31\n"), options: { format: "csv" } }]);
    expect(await dates.lake.sql("SELECT d::VARCHAR AS d FROM t")).toEqual([{ d: "2031-02-03" }, { d: "2031-12-31" }]);
  });
});

describe("Parquet", () => {
  it("D16: bounds of long text and bytes", async () => {
    const texts = ["z".repeat(300), `${"z".repeat(300)}a`, "\u{10FFFF}".repeat(100), "é".repeat(200)];
    const b = new Uint8Array(300).fill(0xff);
    await using opened = await open([texts.map((v) => ({ v, b }))], { schema: { v: "string", b: "binary" } });
    expect(await opened.lake.sql("SELECT min(v) a, max(v) b FROM t")).toEqual([{ a: texts[0], b: texts[2] }]);
    expect(await opened.lake.sql("SELECT count(*) n FROM t WHERE v > repeat('z', 299)")).toEqual([{ n: 4n }]);
    expect(await opened.lake.sql("SELECT count(*) n, max(b) AS m FROM t WHERE b > unhex(repeat('ff', 299))")).toEqual([
      { n: 4n, m: b },
    ]);
    for (const v of texts)
      expect(await opened.lake.sql("SELECT count(*) n FROM t WHERE v = $1", [v])).toEqual([{ n: 1n }]);
    expect((await opened.second()).map(({ v }) => v)).toEqual(texts);
  });

  it("D17: null lists, empty lists, lists of null, null structs", async () => {
    const rows = [
      { l: [1, 2], ll: [[]], s: { u: null } },
      { l: [], ll: [null, [3]], s: null },
      { l: null, ll: [], s: { u: 1 } },
      { l: [null], ll: null, s: { u: 1 } },
    ];
    const schema = { l: "list<int32>", ll: "list<list<int32>>", s: "struct<u: int32>" } as const;
    for (const input of [rows, bytes(rows.map((row) => JSON.stringify(row)).join("\n"))] as Input[]) {
      await using opened = await open([input], { schema });
      expect(await opened.lake.sql("SELECT len(l)::INT n, l[1] IS NULL AS first, s IS NULL AS none FROM t")).toEqual([
        { n: 2, first: false, none: false },
        { n: 0, first: true, none: true },
        { n: null, first: true, none: false },
        { n: 1, first: true, none: false },
      ]);
      expect(await opened.lake.sql("SELECT l, ll, s FROM t")).toEqual(rows);
      expect(JSON.stringify(await opened.lake.sql("SELECT s FROM t LIMIT 1 OFFSET 1"))).toBe('[{"s":null}]');
      expect(await opened.second()).toEqual(rows);
    }
  });

  it("D18: shapes of lists and maps, and columns that are empty everywhere", async () => {
    const schema = { items: "list<struct<f: string, g: int64>>", props: "map<string,string>", gone: "string" } as const;
    const shape = [
      "optional items (LIST)",
      "repeated list",
      "optional element",
      "optional f (UTF8)",
      "optional g",
      "optional props (MAP)",
      "repeated key_value",
      "required key (UTF8)",
      "optional value (UTF8)",
      "optional gone (UTF8)",
    ];
    for (const row of [{ items: [{ f: "a", g: 1 }], props: { k: "v" } }, { items: [], props: {} }, {}]) {
      await using opened = await open([[row]], { schema });
      expect(await opened.nodes()).toEqual(shape);
    }
    await using opened = await open([[{ items: [{ f: "a", g: 1 }], props: { k: "v" } }]], { schema });
    expect(await opened.lake.sql("SELECT items[1].g AS g, props['k'] AS v FROM t")).toEqual([{ g: 1n, v: "v" }]);
    expect(await opened.second()).toEqual([{ items: [{ f: "a", g: 1n }], props: { k: "v" }, gone: null }]);
  });

  it("D20: one instant in three units, and a null", async () => {
    const folder = join(VECTORS, "interop", "units-parquet");
    const { inputs } = JSON.parse(readFileSync(join(folder, "vector.json"), "utf8")) as { inputs: { file: string }[] };
    await using opened = await open(inputs.map(({ file }) => ({ file: join(folder, file) })));
    const names = (await opened.lake.sql<{ column_name: string }>("DESCRIBE t")).map(({ column_name }) => column_name);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const found = await opened.lake.sql<{ t: string; n: bigint }>(
        `SELECT strftime("${name}" AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S') AS t, count(*) AS n FROM t WHERE "${name}" IS NOT NULL GROUP BY 1`,
      );
      expect(found.map(({ t }) => t)).toEqual(["2031-02-27T23:06:40"]);
    }
  });

  it("D21: nothing to write", async () => {
    const where = (name: string) => {
      const folder = join(VECTORS, "interop", name);
      const { inputs } = JSON.parse(readFileSync(join(folder, "vector.json"), "utf8")) as {
        inputs: { file: string }[];
      };
      return { file: join(folder, inputs[0]!.file) };
    };
    await using opened = await open([], { schema: { a: "int64", v: "string" } });
    async function* nothing(): AsyncGenerator<Uint8Array> {}
    for (const source of [[], nothing(), new Uint8Array(0), bytes("\n\n")] as Source<Record<string, unknown>>[]) {
      const options = Array.isArray(source) ? {} : { format: "ndjson" as const };
      expect(await opened.table.append(source as never, options)).toMatchObject({ status: "committed", rowsAdded: 0 });
    }
    expect(await opened.table.append(bytes("a,v\n"), { format: "csv" })).toMatchObject({ rowsAdded: 0 });
    expect(await opened.table.files()).toEqual([]);
    expect(await opened.lake.sql("SELECT count(*) n, max(v) m, typeof(max(a)) t FROM t")).toEqual([
      { n: 0n, m: null, t: "BIGINT" },
    ]);
    expect(await opened.lake.sql("DESCRIBE t")).toMatchObject([
      { column_name: "a", column_type: "BIGINT" },
      { column_name: "v", column_type: "VARCHAR" },
    ]);

    await using foreign = await open([where("zero-rows")]);
    expect(await foreign.lake.sql("SELECT count(*) n FROM t")).toEqual([{ n: 0n }]);
    await using groups = await open([where("row-groups-3-0-2")]);
    expect(await groups.lake.sql("SELECT count(*) n FROM t")).toEqual([{ n: 5n }]);
    await expect(open([where("zero-columns")])).rejects.toMatchObject({
      code: expect.any(String),
      message: expect.stringMatching(/column/),
    });
  });

  it("D23: negative and wide decimals", async () => {
    const rows = ["-70.05", "-0.01", "123456789012345678901234567.89", null].map((d) => ({
      d,
      e: d === null ? "-1.0000" : null,
    }));
    const schema = { d: "decimal(29,2)", e: "decimal(18,4)" } as const;
    const numbers = rows.map(({ d, e }) => `{"d":${d},"e":${e}}`).join("\n");
    for (const input of [
      rows,
      bytes(numbers),
      {
        source: bytes(`d,e\n${rows.map(({ d, e }) => `${d ?? ""},${e ?? ""}`).join("\n")}\n`),
        options: { format: "csv" } as const,
      },
    ] as Input[]) {
      await using opened = await open([input], { schema });
      expect(await opened.lake.sql("SELECT d, e FROM t")).toEqual(rows);
      expect(await opened.lake.sql("SELECT d FROM t WHERE d < 0 ORDER BY d")).toEqual([
        { d: "-70.05" },
        { d: "-0.01" },
      ]);
      expect(await opened.lake.sql("SELECT e FROM t WHERE e < 0")).toEqual([{ e: "-1.0000" }]);
    }
  });

  it("D26: codec 5 is refused in words", async () => {
    const folder = join(VECTORS, "interop", "codec-lz4-hadoop");
    const { inputs } = JSON.parse(readFileSync(join(folder, "vector.json"), "utf8")) as { inputs: { file: string }[] };
    await expect(open([{ file: join(folder, inputs[0]!.file) }])).rejects.toMatchObject({
      message: expect.stringMatching(/LZ4/i),
    });
  });
});
