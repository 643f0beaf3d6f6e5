// Appends batches one after the other, from a common instant on. Prints each result with how long it was waited for. What a
// process does once, such as loading the encoder, is done before.
import { Lake } from "eider";

const { lake: where, writer, count, at, options } = JSON.parse(process.argv[2]);
const lake = await Lake.open(where, options);
const table = lake.table("t");
const warm = await Lake.open("memory:");
await warm.table("t").append([{ writer, i: 0 }]);
await warm.close();
await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - Date.now())));
for (let i = 0; i < count; i++) {
  const from = performance.now();
  const { status, receipt } = await table.append([{ writer, i }], { batchId: `${writer}-${i}` });
  console.log(JSON.stringify({ status, ...receipt, waitMs: performance.now() - from }));
}
await lake.close();
