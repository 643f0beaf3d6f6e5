// Appends one large file and prints the result with the peak resident memory of this process, in bytes.
import { Lake } from "eider";

const { lake: where, table, file, batchId } = JSON.parse(process.argv[2]);
const lake = await Lake.open(where, { memoryBytes: 256 * 1024 * 1024 });
const started = performance.now();
const result = await lake.table(table).append({ file }, { batchId });
const elapsedMs = performance.now() - started;
// Read before the lake is queried: the figure is the append's.
const peak = process.resourceUsage().maxRSS * 1024;
const native = process.report.getReport().sharedObjects.filter((path) => path.includes("duckdb"));
await lake.close();
console.log(JSON.stringify({ ...result, peak, elapsedMs, native }));
