// Appends batches of a common range of ids, one after the other from its own place in it on. Prints each result, and at the
// end what SQL says.
import { Lake } from "eider";

const { lake: where, cacheDir, ids, from, count } = JSON.parse(process.argv[2]);
const lake = await Lake.open(where, { cacheDir });
for (let i = 0; i < count; i++) {
  const id = (from + i) % ids;
  const { status, receipt } = await lake.table("t").append([{ id }], { batchId: `b-${id}` });
  console.log(JSON.stringify({ status, receipt }));
}
await lake.close();
