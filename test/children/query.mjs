// Runs one query from a process of its own and prints its rows, and what verify finds.
import { Lake } from "eider";

const { lake: where, sql } = JSON.parse(process.argv[2]);
const lake = await Lake.open(where, { mode: "open" });
const answer = { tables: (await lake.tables()).map((table) => table.name) };
try {
  answer.rows = await lake.with({ values: "json" }).sql(sql);
} catch (error) {
  answer.error = error.code;
}
answer.findings = (await lake.verify()).findings.map((finding) => finding.kind);
console.log(JSON.stringify(answer));
await lake.close();
