import { fileURLToPath } from "node:url";
import * as core from "@eider/core";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";

const KINDS = [
  "InvalidInputError",
  "SchemaError",
  "BatchConflictError",
  "NotFoundError",
  "AlreadyExistsError",
  "StoreError",
  "CatalogError",
  "QueryError",
  "LimitError",
  "CorruptionError",
] as const;

type Kinds = Record<(typeof KINDS)[number], new (code: string, message: string, details?: object) => core.EiderError>;

async function minified(): Promise<Kinds> {
  const entry = fileURLToPath(new URL("../src/errors.ts", import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "esm",
    write: false,
  });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0]!.text)}`) as Promise<Kinds>;
}

describe("error kinds", () => {
  it("keep their names in a bundle that is minified", async () => {
    const kinds = await minified();
    const errors = KINDS.map((kind) => new kinds[kind]("a_code", "a message"));
    expect(errors.map(({ name }) => name)).toEqual(KINDS);
    expect(String(errors[0])).toBe("InvalidInputError: a message");
  });

  it.each(KINDS)("%s carries code, subject and cause", (kind) => {
    const cause = new Error("what failed first");
    const error = new (core as Kinds)[kind]("a_code", "a message", { cause, subject: "events" });
    expect(error).toBeInstanceOf(core.EiderError);
    expect(error).toMatchObject({ name: kind, code: "a_code", message: "a message", subject: "events", cause });
    expect(new (core as Kinds)[kind]("a_code", "a message")).not.toHaveProperty("cause");
  });
});
