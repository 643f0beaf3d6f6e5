import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { formatTypeMapping, formatWideningTable } from "../src/index.js";

const page = readFileSync(new URL("../../../docs/types.md", import.meta.url), "utf8");
const printed = new Map(
  Array.from(page.matchAll(/<!-- printed: (\w+) -->\n\n(.*?)\n\n<!-- end -->/gs), ([, name, table]) => [name, table]),
);

// After a change: npm run build && node scripts/types-page.mjs
test("docs/types.md has the tables of the code", () => {
  expect([...printed.keys()]).toEqual(["mapping", "widening"]);
  expect(printed.get("mapping")).toBe(formatTypeMapping());
  expect(printed.get("widening")).toBe(formatWideningTable());
});
