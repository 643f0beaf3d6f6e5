/** Faults that the simulation has to find. Each is a mistake that somebody could make, or has made elsewhere. */

import type { Fault } from "./bundle.js";

export interface Mutant {
  readonly name: string;
  readonly faults: readonly Fault[];
}

const APPEND = "packages/eider/src/commit/append.ts";
const CHECK = "packages/catalog/src/check.ts";
const CATALOG = "packages/catalog/src/sqlite-catalog.ts";
const MAINTAIN = "packages/eider/src/maintain.ts";

export const MUTANTS: readonly Mutant[] = [
  {
    name: "skip the floor",
    faults: [
      { file: CHECK, find: "if (oldest && oldest.base < this.#floor) {", replace: "if (oldest && oldest.base < 0) {" },
      {
        file: CATALOG,
        find: 'if (floor > head.floor) driver.run("DELETE FROM intents WHERE base < ?", floor);',
        replace: "",
      },
    ],
  },
  {
    name: "delete orphans before the floor is raised",
    faults: [
      {
        file: MAINTAIN,
        find: 'if (floor > (await catalog.head()).floor) await catalog.commit({ operations: [{ op: "floor", floor }] });',
        replace: "",
      },
    ],
  },
  {
    name: "delete what was listed before the floor was raised",
    faults: [
      {
        file: MAINTAIN,
        find: "const orphaned = await unreferenced(catalog, found);",
        replace: "const orphaned = found;",
      },
    ],
  },
  {
    name: "settle a failed COMMIT by the batch id instead of the entry id",
    faults: [
      {
        file: CATALOG,
        find: "const settled = tries > 0 ? findEntry(driver, id) : undefined;",
        replace: "const settled: number | undefined = undefined as number | undefined;",
      },
    ],
  },
  {
    name: "delete what was staged though the outcome is unknown",
    faults: [
      {
        file: APPEND,
        find: 'settled = error instanceof CatalogError && error.code === "commit_unknown";',
        replace: "settled = false;",
      },
    ],
  },
  {
    name: "take a failed COMMIT for one that had no effect",
    faults: [
      {
        file: "packages/catalog/src/sqlite-connection.ts",
        find: "if (isDiskFull(error)) throw error;",
        replace: "throw toCatalogError(error, this.#name);",
      },
    ],
  },
  {
    name: "hash what the table makes of the input",
    faults: [
      {
        file: "packages/eider/src/commit/read-rows.ts",
        find: "return { schema, contentHash: hash.digest(), rows, rejects, ignoredFields };",
        replace:
          "hash.update(JSON.stringify(schema)); return { schema, contentHash: hash.digest(), rows, rejects, ignoredFields };",
      },
    ],
  },
  {
    name: "trust a put that got no answer",
    faults: [
      {
        file: "packages/eider/src/commit/stage.ts",
        find: "if ((await this.#options.store.head(key))?.size === bytes) return true;",
        replace: "return true;",
      },
    ],
  },
];
