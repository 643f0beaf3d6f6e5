import { InvalidInputError, Lake } from "eider";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** Options as JavaScript, or a variable of a wider type, may hold them: the compiler has not seen them. */
const untyped = (options: unknown): object => options as object;

let lake: Lake;
beforeAll(async () => {
  lake = await Lake.open("memory:");
});
afterAll(() => lake.close());

describe("an option that does not exist is refused, not passed over", () => {
  const uses: Record<string, [() => unknown, string]> = {
    "Lake.open": [() => Lake.open("memory:", untyped({ readonly: true })), "readonly"],
    "lake.table": [() => lake.table("t", untyped({ partitionby: ["a"] })), "partitionby"],
    "lake.with": [() => lake.with(untyped({ snapshot: 1 })), "snapshot"],
    "lake.maintain": [() => lake.maintain(untyped({ budget: 1 })), "budget"],
    "lake.verify": [() => lake.verify(untyped({ hash: false })), "hash"],
    append: [() => lake.table("t").append([{ a: 1 }], untyped({ batchID: "x" })), "batchID"],
    "append's csv": [() => lake.table("t").append(new Uint8Array(), { csv: untyped({ delimeter: ";" }) }), "delimeter"],
    "a name that every object has": [() => lake.with(untyped({ toString: 1 })), "toString"],
  };
  for (const [name, [use, subject]] of Object.entries(uses)) {
    it(name, async () => {
      const error = await Promise.resolve()
        .then(use)
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(InvalidInputError);
      expect(error).toMatchObject({ code: "bad_option", subject });
    });
  }

  it("and nothing was appended", async () => {
    expect(await lake.tables()).toEqual([]);
  });

  it("names the options that there are", async () => {
    const append = lake.table("t").append([{ a: 1 }], untyped({ batchID: "x" }));
    await expect(append).rejects.toThrow(/^append has no option "batchID", only batchId, cursor, format, csv, /);
  });
});

describe("an option of another kind is refused", () => {
  const uses: Record<string, [() => unknown, string]> = {
    "a mode": [
      () => Lake.open("memory:", untyped({ mode: "readonly" })),
      'mode of Lake.open has to be "create", "open" or "read"',
    ],
    "an expression by itself": [
      () => lake.table("t", untyped({ partitionBy: "day(at)" })),
      "partitionBy of lake.table has to be an array of texts",
    ],
    "a value mode": [() => lake.with(untyped({ values: "jsn" })), 'values of lake.with has to be "exact" or "json"'],
    "a schema mode": [
      () => lake.table("t").append([{ a: 1 }], untyped({ schemaMode: "evolv" })),
      'schemaMode of append has to be "evolve", "strict" or "ignore"',
    ],
    "a format": [
      () => lake.table("t").append(new Uint8Array(), untyped({ format: "xlsx" })),
      "format of append has to be ",
    ],
    "a negative limit": [
      () => lake.table("t").append([], untyped({ maxRejects: -1 })),
      "maxRejects of append has to be a number from 0 on",
    ],
    "a batch id by itself": [
      () => lake.table("t").append([{ a: 1 }], untyped("upload-1")),
      "the options of append have to be an object with batchId, ",
    ],
    "no options at all": [() => lake.table("t", untyped(null)), "the options of lake.table have to be an object"],
  };
  for (const [name, [use, message]] of Object.entries(uses)) {
    it(name, async () => {
      const error = await Promise.resolve()
        .then(use)
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: "InvalidInputError", code: "bad_option" });
      expect((error as Error).message).toContain(message);
    });
  }
});

it("takes undefined for an option that is left out", async () => {
  const table = lake.table("u", untyped({ partitionBy: undefined }));
  const { status } = await table.append([{ a: 1 }], untyped({ batchId: undefined, csv: undefined, signal: undefined }));
  expect(status).toBe("committed");
});
