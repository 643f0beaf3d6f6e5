/** Prints the tables of docs/types.md from the code, after a change of either: `npm run build && node scripts/types-page.mjs`. */

import { readFileSync, writeFileSync } from "node:fs";
import { formatTypeMapping, formatWideningTable } from "../packages/core/dist/index.js";

const path = new URL("../docs/types.md", import.meta.url);
const tables = { mapping: formatTypeMapping(), widening: formatWideningTable() };

// packages/core/test/types-page.test.ts reads the same marks.
const printed = readFileSync(path, "utf8").replace(
  /(<!-- printed: (\w+) -->\n).*?(<!-- end -->)/gs,
  (_, begin, name, end) => `${begin}\n${tables[name]}\n\n${end}`,
);
writeFileSync(path, printed);
