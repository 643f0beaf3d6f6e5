import { describe, expect, test } from "vitest";
import { layerProblems } from "./support/layers.js";
import { sourceFiles } from "./support/repository.js";

describe("imports", () => {
  test("point downward, are declared, used, and form no ring", () => {
    const files = sourceFiles();
    expect(files.size).toBeGreaterThan(20);
    expect(layerProblems(files)).toEqual([]);
  });
});

describe("a planted fault is found", () => {
  const problemsOf = (files: Readonly<Record<string, string>>): string[] =>
    layerProblems(new Map(Object.entries(files)));
  const manifest = (...dependencies: string[]): string =>
    JSON.stringify({ dependencies: Object.fromEntries(dependencies.map((name) => [name, "1.0.0"])) });

  test("an import that points upward", () => {
    const files = {
      "packages/core/package.json": manifest("@eider/storage"),
      "packages/core/src/index.ts": 'import type { ObjectStore } from "@eider/storage";',
    };
    expect(problemsOf(files)).toEqual([
      "packages/core/src/index.ts imports @eider/storage: packages/core may import no other package",
    ]);
  });

  test("catalog and storage knowing each other, also by a dynamic or a type import", () => {
    const files = {
      "packages/catalog/package.json": manifest("@eider/storage"),
      "packages/catalog/src/index.ts": 'export const load = () => import("@eider/storage/conformance");',
      "packages/storage/package.json": manifest("@eider/catalog"),
      "packages/storage/src/index.ts": 'export type Receipt = import("@eider/catalog").Receipt;',
    };
    expect(problemsOf(files)).toEqual([
      "packages/catalog/src/index.ts imports @eider/storage/conformance: packages/catalog may import core",
      "packages/storage/src/index.ts imports @eider/catalog: packages/storage may import core",
    ]);
  });

  test("a path into another package", () => {
    const files = {
      "packages/eider/package.json": manifest(),
      "packages/eider/src/index.ts": 'export * from "../../core/src/schema.js";',
    };
    expect(problemsOf(files)).toEqual([
      "packages/eider/src/index.ts imports ../../core/src/schema.js, outside its package's src",
    ]);
  });

  test("Node.js in the portable part of core", () => {
    const files = {
      "packages/core/package.json": manifest(),
      "packages/core/src/index.ts": 'export * from "./node.js";',
      "packages/core/src/hash.ts": 'import { createHash } from "crypto";',
      "packages/core/src/node.ts": 'import { createHash } from "node:crypto";',
    };
    expect(problemsOf(files)).toEqual([
      "packages/core/src/index.ts imports ./node.js: the portable part of core must not reach its Node.js part",
      "packages/core/src/hash.ts imports crypto: core is portable, only src/node.ts may use Node.js",
    ]);
  });

  test("a dependency that is not declared, and one that is not used", () => {
    const files = {
      "packages/query/package.json": manifest("p-limit"),
      "packages/query/src/index.ts": '// from "p-limit"\nimport { Table } from "apache-arrow/Arrow.node";',
    };
    expect(problemsOf(files)).toEqual([
      "packages/query/src/index.ts imports apache-arrow/Arrow.node, which packages/query/package.json does not declare",
      "packages/query/package.json declares p-limit, which nothing imports",
    ]);
  });

  test("files that import each other in a ring", () => {
    const files = {
      "packages/core/package.json": manifest(),
      "packages/core/src/a.ts": 'import "./b.js";',
      "packages/core/src/b.ts": 'import "./c.js";',
      "packages/core/src/c.ts": 'import { type B, b } from "./b.js";',
      // Types leave no import behind, so they make no ring.
      "packages/core/src/d.ts": 'import { e } from "./e.js";',
      "packages/core/src/e.ts": 'import type { D } from "./d.js"; export type { D2 } from "./d.js";',
    };
    expect(problemsOf(files)).toEqual(["import cycle: b.ts → c.ts → b.ts"]);
  });

  test("a package without a place in the layers", () => {
    expect(problemsOf({ "packages/extra/package.json": manifest() })).toEqual([
      "packages/extra has no place in the layers: say in test/support/layers.ts what it may import",
    ]);
  });
});
