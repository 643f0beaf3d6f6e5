// Asks a lake with a cache that is shared, and prints the answer and where it came from. With `stays` it goes on holding the
// copies in the middle of a stream, until it is killed.
import { Lake } from "eider";

const { lake: where, cacheDir, sql, stays = false } = JSON.parse(process.argv[2]);
const lake = await Lake.open(where, { cacheDir, wholeFileBytes: 0 });
if (stays) {
  const rows = lake.sql(sql)[Symbol.asyncIterator]();
  await rows.next();
  console.log(JSON.stringify("reading"));
  await new Promise((resolve) => setTimeout(resolve, 60_000));
}
const query = lake.sql(sql);
const [row] = await query;
const answer = { value: String(Object.values(row)[0]), from: query.stats.from };
await lake.close();
console.log(JSON.stringify(answer));
