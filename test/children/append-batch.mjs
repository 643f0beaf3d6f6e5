// Appends one batch after a common instant, so that several of these start together. Prints the result.
import { Lake } from "eider";

const { lake: where, table, rows, batchId, at, repeat = 1, options } = JSON.parse(process.argv[2]);
const lake = await Lake.open(where, options);
await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - Date.now())));
for (let i = 0; i < repeat; i++) {
  const results = await Promise.all([lake.table(table).append(rows, { batchId })]);
  for (const result of results) console.log(JSON.stringify(result));
}
await lake.close();
