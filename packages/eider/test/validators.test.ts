import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { formatType, Lake, type Schema, type StandardSchema } from "eider";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const columns = ({ fields }: Schema): Record<string, string> =>
  Object.fromEntries(fields.map(({ name, type, nullable }) => [nullable ? name : `${name}!`, formatType(type)]));

const Order = z.object({
  id: z.int(),
  placed: z.date(),
  status: z.enum(["open", "paid"]),
  total: z.number().optional(),
  items: z.array(z.object({ sku: z.string(), n: z.int() })),
});

const order = (id: number) => ({
  id,
  placed: new Date("2026-02-01T10:00:00Z"),
  status: "open" as const,
  items: [{ sku: "a", n: 2 }],
});

describe("columns", () => {
  it("are what zod describes, all nullable, dates and bigints as well", async () => {
    const lake = await Lake.open("memory:");
    const table = lake.table("orders", { schema: Order.extend({ big: z.bigint() }), partitionBy: ["month(placed)"] });
    const { schema } = await table.create();
    expect(columns(schema)).toEqual({
      id: "int64",
      placed: "timestamptz",
      status: "string",
      total: "float64",
      items: "list<struct<sku: string, n: int64>>",
      big: "int64",
    });
    await lake.close();
  });

  it("of times are by what zod lets through", async () => {
    const lake = await Lake.open("memory:");
    const table = lake.table("t", {
      schema: z.object({
        zoned: z.iso.datetime({ offset: true }),
        local: z.iso.datetime({ local: true }),
        day: z.iso.date(),
        time: z.iso.time(),
      }),
    });
    await table.append([
      { zoned: "2026-02-01T10:00:00+01:00", local: "2026-02-01T10:00:00", day: "2026-02-01", time: "10:00" },
    ]);
    expect(columns((await table.describe()).schema)).toEqual({
      zoned: "timestamptz",
      local: "string",
      day: "date",
      time: "string",
    });
    expect(await lake.sql("FROM t")).toEqual([
      { zoned: "2026-02-01T09:00:00.000000Z", local: "2026-02-01T10:00:00", day: "2026-02-01", time: "10:00" },
    ]);
    await lake.close();
  });

  it("are what a validator with Standard JSON Schema describes, of whatever library", async () => {
    const lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: toStandardJsonSchema(v.object({ a: v.number(), b: v.string() })) });
    expect(columns((await table.create()).schema)).toEqual({ a: "float64", b: "string" });
    await lake.close();
  });

  it("are inferred where the validator describes nothing, or cannot", async () => {
    const lake = await Lake.open("memory:");
    const plain = lake.table("plain", { schema: v.object({ a: v.number(), at: v.date() }) });
    await plain.append([{ a: 1, at: new Date(0) }]);
    expect(columns((await plain.describe()).schema)).toEqual({ a: "int64", at: "timestamptz" });

    // Its output is a number, which its JSON Schema would not say: valibot throws, and the rows tell.
    const length = v.pipe(
      v.string(),
      v.transform((text) => text.length),
    );
    const transformed = lake.table("transformed", { schema: toStandardJsonSchema(v.object({ a: length })) });
    await transformed.append([{ a: "four" }]);
    expect(columns((await transformed.describe()).schema)).toEqual({ a: "int64" });
    expect(await lake.sql("SELECT a FROM transformed")).toEqual([{ a: 4n }]);
    await lake.close();
  });

  it("of a union of objects are all of theirs", async () => {
    const lake = await Lake.open("memory:");
    const Event = z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("click"), x: z.int() }),
      z.object({ kind: z.literal("view"), page: z.string() }),
    ]);
    const table = lake.table("events", { schema: Event });
    await table.append([
      { kind: "view", page: "/" },
      { kind: "click", x: 3 },
    ]);
    expect(await lake.sql("SELECT * FROM events ORDER BY kind")).toEqual([
      { kind: "click", x: 3n, page: null },
      { kind: "view", x: null, page: "/" },
    ]);
    await lake.close();
  });

  it("that are new to the validator are added to the table; types that it has stay", async () => {
    const lake = await Lake.open("memory:");
    await lake.table("t", { schema: z.object({ id: z.int(), day: z.string() }) }).append([{ id: 1, day: "x" }]);
    const grown = lake.table("t", { schema: z.object({ id: z.number(), ref: z.uuid().nullable() }) });
    await grown.append([{ id: 2, ref: null }]);
    expect(columns((await grown.describe()).schema)).toEqual({ id: "int64", day: "string", ref: "uuid" });
    await grown.append([{ id: 0.5, ref: "00000000-0000-4000-8000-000000000000" }]);
    expect(columns((await grown.describe()).schema)).toEqual({ id: "float64", day: "string", ref: "uuid" });
    expect(await lake.sql("SELECT * FROM t ORDER BY id")).toEqual([
      { id: 0.5, day: null, ref: "00000000-0000-4000-8000-000000000000" },
      { id: 1, day: "x", ref: null },
      { id: 2, day: null, ref: null },
    ]);
    const refused = await lake
      .table("t", { schema: z.object({ more: z.int() }) })
      .append([{ more: 1 }], { schemaMode: "strict" })
      .catch((e) => e);
    expect(refused.rows).toMatchObject([{ line: 1, code: "unknown_field" }]);
    const ids = (await grown.describe()).schema.fields.map(({ id }) => id);
    expect(ids).toEqual([1, 2, 3]);
    await lake.close();
  });
});

describe("rows", () => {
  it("that the validator refuses fail the batch, with path and reason", async () => {
    const lake = await Lake.open("memory:");
    const table = lake.table("orders", { schema: Order });
    const wrong = { ...order(2), status: "lost", items: [{ sku: 7, n: 1 }] };
    const error = await table.append([order(1), wrong, order(3)] as never).catch((e) => e);
    expect(error).toMatchObject({ name: "InvalidInputError", code: "rejected_rows" });
    expect(error.rows).toHaveLength(1);
    expect(error.rows[0]).toMatchObject({ line: 2, code: "invalid_row" });
    expect(error.rows[0].reason).toMatch(/^status: .*; items\[0\]\.sku: /);
    expect(await lake.tables()).toEqual([]);
    await lake.close();
  });

  it("that it refuses are kept aside on request, with their lines among all others", async () => {
    const lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: z.object({ a: z.int().max(10) }) });
    // Row 4 passes the validator; the column refuses it.
    const rows = [{ a: 1 }, { a: 11 }, { a: 3 }, { a: 4, c: Symbol("no column takes it") }, { a: 1.5 }];
    const loose = lake.table("t", { schema: z.looseObject({ a: z.int().max(10) }) });
    const result = await loose.append(rows, { onReject: "quarantine" });
    expect(result).toMatchObject({ rowsAdded: 2, rowsRejected: 3 });
    expect((await table.rejects()).map(({ line, code, raw }) => [line, code, raw])).toEqual([
      [2, "invalid_row", '{"a":11}'],
      [4, "unsupported_value", ""],
      [5, "invalid_row", '{"a":1.5}'],
    ]);
    expect(await lake.sql("SELECT a FROM t ORDER BY a")).toEqual([{ a: 1n }, { a: 3n }]);
    await lake.close();
  });

  it("are stored as the validator returns them: defaults, coercion, transforms, unknown keys stripped", async () => {
    const lake = await Lake.open("memory:");
    const Input = z.object({
      id: z.coerce.number().int(),
      name: z.string().trim().toUpperCase(),
      source: z.string().default("web"),
    });
    const table = lake.table("t", { schema: Input });
    await table.append([{ id: "7", name: " ada ", dropped: true }] as never);
    expect(await lake.sql("SELECT * FROM t")).toEqual([{ id: 7n, name: "ADA", source: "web" }]);
    await lake.close();
  });

  it("are awaited where the validator is asynchronous", async () => {
    const lake = await Lake.open("memory:");
    const Known = z.object({
      user: z.string().refine(async (user) => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        return user !== "mallory";
      }, "unknown user"),
    });
    const table = lake.table("t", { schema: Known });
    await table.append([{ user: "ada" }, { user: "bob" }]);
    const error = await table.append([{ user: "eve" }, { user: "mallory" }]).catch((e) => e);
    expect(error.rows).toEqual([{ line: 2, code: "invalid_row", reason: "user: unknown user" }]);
    expect(await lake.sql("SELECT user FROM t ORDER BY user")).toEqual([{ user: "ada" }, { user: "bob" }]);
    await lake.close();
  });

  it("are recognised on a retry by what came in, whatever a transform makes of them", async () => {
    const lake = await Lake.open("memory:");
    let calls = 0;
    const Stamped = z.object({ id: z.int(), n: z.int().default(() => ++calls) });
    const table = lake.table("t", { schema: Stamped });
    const first = await table.append([{ id: 1 }], { batchId: "b" });
    const again = await table.append([{ id: 1 }], { batchId: "b" });
    expect([first.status, again.status]).toEqual(["committed", "duplicate"]);
    await expect(table.append([{ id: 2 }], { batchId: "b" })).rejects.toMatchObject({ code: "batch_conflict" });
    await lake.close();
  });

  it("come from streams as well; bytes have no rows and are held to the columns", async () => {
    const lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: z.object({ a: z.int().max(10) }) });
    const error = await table
      .append(
        (async function* () {
          yield { a: 1 };
          yield { a: 11 };
        })(),
      )
      .catch((e) => e);
    expect(error.rows).toMatchObject([{ line: 2, code: "invalid_row" }]);
    await table.append(new TextEncoder().encode('{"a":11}\n'));
    expect(await lake.sql("SELECT a FROM t")).toEqual([{ a: 11n }]);
    await lake.close();
  });

  it("are checked by validators that are functions, as ArkType's are", async () => {
    const lake = await Lake.open("memory:");
    const issues = [{ message: "must be even", path: [{ key: "a" }] }];
    const even: StandardSchema<{ a: number }> = Object.assign(() => {}, {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) => ((value as { a: number }).a % 2 === 0 ? { value } : { issues }),
      },
    });
    const result = await lake.table("t", { schema: even }).append([{ a: 2 }, { a: 3 }], { onReject: "quarantine" });
    expect(result).toMatchObject({ rowsAdded: 1, rowsRejected: 1 });
    expect(await lake.table("t").rejects()).toMatchObject([{ line: 2, reason: "a: must be even" }]);
    await lake.close();
  });

  it("are not waited for after an abort", async () => {
    const lake = await Lake.open("memory:");
    const controller = new AbortController();
    const reason = new Error("enough");
    const validate = (): Promise<{ value: { a: number } }> => {
      setImmediate(() => controller.abort(reason));
      return new Promise(() => {});
    };
    const hanging: StandardSchema<{ a: number }> = { "~standard": { version: 1, vendor: "test", validate } };
    const append = lake.table("t", { schema: hanging }).append([{ a: 1 }], { signal: controller.signal });
    await expect(append).rejects.toBe(reason);
    await lake.close();
  });

  it("a validator that throws fails the append and says so", async () => {
    const lake = await Lake.open("memory:");
    const cause = new Error("the user service is down");
    const validate = async (value: unknown) => {
      if ((value as { a: number }).a === 2) throw cause;
      return { value };
    };
    const failing: StandardSchema<{ a: number }> = { "~standard": { version: 1, vendor: "test", validate } };
    const table = lake.table("t", { schema: failing });
    await expect(table.append([{ a: 1 }, { a: 2 }])).rejects.toMatchObject({ code: "validator_failed", cause });
    expect(await lake.tables()).toEqual([]);
    await lake.close();
  });
});
