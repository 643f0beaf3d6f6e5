import { join } from "node:path";
import { Lake } from "eider";
import ts from "typescript";
import { beforeAll, expect, it } from "vitest";
import { eiderOk, temporaryFolder } from "./harness.js";

const lake = join(temporaryFolder(), "lake");

beforeAll(async () => {
  await using made = await Lake.open(lake);
  const schema = {
    "id!": "int64",
    small: "int16",
    real: "float64",
    flag: "bool",
    name: "string",
    "odd name's\"": "string",
    class: "uint64",
    price: "decimal(10,2)",
    day: "date",
    clock: "time",
    local: "timestamp",
    instant: "timestamptz",
    key: "uuid",
    doc: "json",
    bytes: "binary",
    code: "fixed(2)",
    tags: "list<string>",
    matrix: "list<list<int64>>",
    counts: "map<string,int64>",
    place: "struct<city!: string, at: struct<lat: float64>>",
  };
  await made.table("all", { schema }).append([
    {
      id: 1n,
      small: -2,
      real: 0.5,
      flag: true,
      name: "x",
      "odd name's\"": "y",
      class: 2n,
      price: "1.50",
      day: "2031-02-03",
      clock: "04:05:06",
      local: "2031-02-03T04:05:06",
      instant: "2031-02-03T04:05:06Z",
      key: "123e4567-e89b-12d3-a456-426614174000",
      doc: { any: [1] },
      bytes: Uint8Array.of(1),
      code: Uint8Array.of(1, 2),
      tags: ["a", null],
      matrix: [[1n], null],
      counts: new Map([["a", 1n]]),
      place: { city: "Oslo", at: { lat: 59.9 } },
    },
    { id: 2n },
  ] as object[]);
  await made
    .table("ns.events")
    .append([{ id: 1, never: null, nested: { unknown: null, known: 1 }, none: { at: { all: null } } }]);
});

/** What a strict compiler has to say of a program beside `tables.ts`. */
function complaints(tables: string, program: string): string[] {
  const sources = new Map([
    ["/tables.ts", tables],
    ["/program.ts", program],
  ]);
  const options: ts.CompilerOptions = { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, types: [] };
  const host = ts.createCompilerHost(options);
  const own = host.getSourceFile.bind(host);
  host.getSourceFile = (name, version) =>
    sources.has(name) ? ts.createSourceFile(name, sources.get(name)!, version) : own(name, version);
  host.fileExists = (name) => sources.has(name) || ts.sys.fileExists(name);
  host.readFile = (name) => sources.get(name) ?? ts.sys.readFile(name);
  const compiled = ts.createProgram([...sources.keys()], options, host);
  return ts
    .getPreEmitDiagnostics(compiled)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

/** A value as an expression of TypeScript. */
function expression(value: unknown): string {
  if (typeof value === "bigint") return `${value}n`;
  if (value instanceof Uint8Array) return `new Uint8Array(${JSON.stringify([...value])})`;
  if (value instanceof Map) return `new Map([${[...value].map((pair) => expression(pair)).join(", ")}] as const)`;
  if (Array.isArray(value)) return `[${value.map(expression).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{ ${Object.entries(value)
      .map(([key, item]) => `${JSON.stringify(key)}: ${expression(item)}`)
      .join(", ")} }`;
  }
  return JSON.stringify(value);
}

it("prints an interface that a strict compiler takes, and that the rows fit", async () => {
  const { stdout: tables } = await eiderOk(["types", lake]);
  await using open = await Lake.open(lake, { mode: "read" });
  const program = ['import type { Tables } from "./tables.js";'];
  for (const table of ["all", "ns.events"]) {
    for (const row of await open.sql(`SELECT * FROM "${table.replace(".", '"."')}" ORDER BY id`)) {
      program.push(`export const _${program.length}: Tables[${JSON.stringify(table)}] = ${expression(row)};`);
    }
  }
  expect(program).toHaveLength(4);
  expect(complaints(tables, program.join("\n"))).toEqual([]);

  // The compiler does look: what no row can be is refused.
  const wrong = [
    'import type { Tables } from "./tables.js";',
    'export const a: Tables["all"]["id"] = null;',
    'export const b: Tables["all"]["price"] = 1.5;',
    'export const c: Tables["all"]["place"] = { city: null, at: null };',
    'export const d: Tables["ns.events"]["never"] = 1;',
    'export const e: Tables["ns.events"]["none"] = {};',
    'export const f: Tables["none"] = 1;',
  ];
  expect(complaints(tables, wrong.join("\n"))).toHaveLength(6);
});

it("--json has the same source, for programs that write files", async () => {
  const { stdout } = await eiderOk(["types", lake]);
  expect(JSON.parse((await eiderOk(["types", lake, "--json"])).stdout)).toEqual({ source: stdout });
});

it("of a lake without tables is an empty interface", async () => {
  const empty = join(lake, "..", "empty");
  await (await Lake.open(empty)).close();
  const { stdout } = await eiderOk(["types", empty]);
  expect(complaints(stdout, 'import type { Tables } from "./tables.js";\nexport const t: Tables = {};')).toEqual([]);
});
