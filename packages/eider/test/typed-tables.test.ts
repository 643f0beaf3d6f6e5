import { fileURLToPath } from "node:url";
import { Lake, type ResultRow, type Row, type Source, schema, type Table, t } from "eider";
import ts from "typescript";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";

const events = schema({
  id: t.int64().required(),
  at: t.timestamptz().required(),
  shop: t.struct({ name: t.string().required(), open: t.bool() }),
  tags: t.list(t.string()),
});

describe("a table whose schema comes from the builder", () => {
  it("stores rows and gives them back as their types say", async () => {
    const lake = await Lake.open("memory:");
    const table = lake.table("events", { schema: events, partitionBy: ["day(at)"] });
    await table.append([
      { id: 1, at: new Date("2026-02-01T10:00:00Z"), shop: { name: "a" }, tags: ["x", null] },
      { id: 2n ** 62n, at: "2026-02-02T00:00:00+01:00" },
    ]);
    const rows: ResultRow<typeof events>[] = await lake.sql<ResultRow<typeof events>>(
      "SELECT * FROM events ORDER BY id",
    );
    expect(rows).toEqual([
      { id: 1n, at: "2026-02-01T10:00:00.000000Z", shop: { name: "a", open: null }, tags: ["x", null] },
      { id: 4611686018427387904n, at: "2026-02-01T23:00:00.000000Z", shop: null, tags: null },
    ]);
    await lake.close();
  });

  it("holds bytes, which have no types, to the same columns", async () => {
    const lake = await Lake.open("memory:");
    const table = lake.table("events", { schema: events });
    const error = await table.append(new TextEncoder().encode('{"id":1}\n')).catch((e) => e);
    expect(error.rows).toMatchObject([{ line: 1, code: "missing_value" }]);
    await lake.close();
  });

  it("exists with these columns, or is refused", async () => {
    const lake = await Lake.open("memory:");
    await lake.table("events", { schema: { id: "string" } }).create();
    await expect(lake.table("events", { schema: events }).append([{ id: 1, at: new Date() }])).rejects.toMatchObject({
      name: "SchemaError",
      code: "table_differs",
    });
    await lake.close();
  });
});

describe("the types of a table's rows", () => {
  it("are those of the builder, of the validator's input, or what the caller says", () => {
    const tables = (lake: Lake) => ({
      built: lake.table("t", { schema: events }),
      checked: lake.table("t", { schema: z.object({ a: z.coerce.number(), d: z.date().default(() => new Date()) }) }),
      text: lake.table("t", { schema: { id: "int64" } }),
      said: lake.table<{ id: number }>("t", { schema: { id: "int64" } }),
      none: lake.table("t"),
    });
    type Tables = ReturnType<typeof tables>;
    expectTypeOf<Tables["built"]>().toEqualTypeOf<Table<Row<typeof events>>>();
    expectTypeOf<Tables["checked"]>().toEqualTypeOf<Table<{ a: unknown; d?: Date | undefined }>>();
    expectTypeOf<Tables["text"]>().toEqualTypeOf<Table<object>>();
    expectTypeOf<Tables["said"]>().toEqualTypeOf<Table<{ id: number }>>();
    expectTypeOf<Tables["none"]>().toEqualTypeOf<Table<object>>();
    expectTypeOf<AsyncIterable<{ id: number; at: string }>>().toExtend<Source<Row<typeof events>>>();
    expectTypeOf<AsyncIterable<{ id: boolean; at: string }>>().not.toExtend<Source<Row<typeof events>>>();
  });

  // One line each, with what the compiler says to it; "" where it is content.
  const lines: readonly (readonly [code: string, message: string])[] = [
    ["table.append([{ id: 1, at: new Date() }]);", ""],
    ['table.append([{ id: 1n, at: "2026-02-01T00:00:00Z", tags: ["a", null], shop: null }]);', ""],
    ["table.append(new Uint8Array());", ""],
    ['table.append({ file: "events.ndjson" });', ""],
    ['table.append([{ id: "1", at: new Date() }]);', "Type 'string' is not assignable to type 'number | bigint'."],
    ["table.append([{ id: 1, at: new Date(), tag: [] }]);", "'tag' does not exist in type"],
    ["table.append([{ id: 1 }]);", "Property 'at' is missing in type"],
    ["table.append([{ id: null, at: new Date() }]);", "Type 'null' is not assignable to type 'number | bigint'."],
    ["table.append([{ id: 1, at: new Date(), shop: { open: true } }]);", "Property 'name' is missing in type"],
    ["table.append([{ id: 1, at: new Date(), tags: [1] }]);", "Type 'number' is not assignable to type 'string'."],
    ['checked.append([{ a: "x" }]);', ""],
    ["checked.append([{ a: 1 }]);", "Type 'number' is not assignable to type 'string'."],
    ['checked.append([{ a: "x", b: 1 }]);', "'b' does not exist in type"],
    ["lake.table('t', { shema: events });", "Did you mean to write 'schema'?"],
    [
      "const row: ResultRow<typeof events> = { id: 1, at: '', shop: null, tags: null };",
      "'number' is not assignable to type 'bigint'.",
    ],
  ];

  it("make the compiler refuse rows that no column takes, and say why", () => {
    const name = fileURLToPath(new URL("typed-rows.fixture.ts", import.meta.url));
    const head = [
      'import { type Lake, type ResultRow, schema, t } from "eider";',
      'import { z } from "zod";',
      "declare const lake: Lake;",
      "const events = schema({ id: t.int64().required(), at: t.timestamptz().required(), tags: t.list(t.string()),",
      "  shop: t.struct({ name: t.string().required(), open: t.bool() }) });",
      'const table = lake.table("events", { schema: events });',
      'const checked = lake.table("checked", { schema: z.object({ a: z.string() }) });',
      "export {};",
    ];
    const messages = messagesByLine(name, [...head, ...lines.map(([code]) => code)].join("\n"));
    for (const [i, [code, message]] of lines.entries()) {
      const said = messages.get(head.length + i) ?? "";
      if (message === "") expect([code, said]).toEqual([code, ""]);
      else expect(said, code).toContain(message);
    }
    expect(Math.min(...messages.keys())).toBeGreaterThanOrEqual(head.length);
    // The compiler reads all packages for it.
  }, 240_000);
});

/** What the compiler says, by line from 0, with the settings of this repository. */
function messagesByLine(name: string, source: string): Map<number, string> {
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (file) => file === name || fileExists.call(host, file);
  host.readFile = (file) => (file === name ? source : readFile.call(host, file));
  host.getSourceFile = (file, settings) =>
    file === name ? ts.createSourceFile(file, source, settings) : getSourceFile.call(host, file, settings);
  const program = ts.createProgram([name], options, host);
  const file = program.getSourceFile(name)!;
  const found = new Map<number, string>();
  for (const { start, messageText } of [
    ...program.getSyntacticDiagnostics(file),
    ...program.getSemanticDiagnostics(file),
  ]) {
    const { line } = ts.getLineAndCharacterOfPosition(file, start!);
    found.set(line, `${found.get(line) ?? ""}${ts.flattenDiagnosticMessageText(messageText, "\n")}\n`);
  }
  return found;
}
