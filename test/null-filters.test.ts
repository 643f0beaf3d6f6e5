/** Filters that match nulls find them in files that DuckDB's own statistics would skip. */

import { Lake } from "eider";
import { expect, test } from "vitest";
import { FILES } from "./support/files.js";

test("row groups of nulls, and of nulls and the compared value, match IS DISTINCT FROM beside OR", async () => {
  await using lake = await Lake.open("memory:", FILES);
  const schema = { id: "int64", v: "int64", p: "struct<k: int64>", d: "date", s: "string", j: "json" };
  const table = lake.table("t", { schema });
  const nothing = { v: null, p: { k: null }, d: null, s: null, j: null };
  const five = { v: 5, p: { k: 5 }, d: "2031-02-03", s: "five", j: 5 };
  await table.append([{ id: 0, ...nothing }]);
  await table.append([
    { id: 1, ...nothing },
    { id: 2, ...five },
  ]);
  await table.append([{ id: 3, ...five, later: 1 }]);
  for (const [condition, ids] of Object.entries({
    "v < 1 OR v IS DISTINCT FROM 5": [0, 1],
    "v IS /* not */ DISTINCT -- yet\nFROM 5 or v < 1": [0, 1],
    "NOT (v >= 1 AND v IS NOT DISTINCT FROM 5)": [0, 1],
    "v IS DISTINCT FROM 5 OR v IS DISTINCT FROM 6": [0, 1, 2, 3],
    "p.k < 1 OR p.k IS DISTINCT FROM 5": [0, 1],
    "d < '2000-01-01' OR d IS DISTINCT FROM '2031-02-03'": [0, 1],
    "s < 'a' OR s IS DISTINCT FROM 'five'": [0, 1],
    "j::VARCHAR < '1' OR j IS DISTINCT FROM '5'": [0, 1],
    "later > 1 OR later IS DISTINCT FROM 1": [0, 1, 2],
    "v < 1 OR v IS NULL": [0, 1],
  })) {
    for (const prune of [true, false]) {
      const rows = await lake.with({ prune }).sql<{ id: bigint }>(`SELECT id FROM t WHERE ${condition} ORDER BY id`);
      expect([condition, prune, ...rows.map(({ id }) => Number(id))]).toEqual([condition, prune, ...ids]);
    }
  }
});
