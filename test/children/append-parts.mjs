// Appends a file in parts, and is killed (SIGKILL, by itself) at a moment of one part: when some of it is read, when its
// file was put, before its commit or after it. Prints each put of a data file, and at last the result.
import { join } from "node:path";
import { SqliteCatalog } from "@eider/catalog";
import { FaultStore, FileStore } from "@eider/storage";
import { Lake } from "eider";

const { lake: where, table, file, batchId, partBytes, kill, at = 0 } = JSON.parse(process.argv[2]);
const die = () => process.kill(process.pid, "SIGKILL");
let current = 0;
const store = new FaultStore(new FileStore(where), {
  after(call) {
    if (call.kind !== "put" || !call.keys[0].endsWith(".parquet")) return;
    console.log(JSON.stringify("put"));
    if (kill?.moment === "put" && current === kill.part) die();
  },
});
const catalog = await SqliteCatalog.open({ path: join(where, "_eider", "catalog.sqlite"), mode: "open" });
const lake = await Lake.open({ store, catalog }, { inlineBytes: 0 });
await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - Date.now())));
let commits = 0;
const result = await lake.table(table).appendParts(
  { file },
  {
    batchId,
    partBytes,
    onProgress({ part, phase }) {
      commits = part === current && phase === "commit" ? commits + 1 : part === current ? commits : 0;
      current = part;
      if (!kill || part !== kill.part) return;
      if (phase === "read" && kill.moment === "read") die();
      if (commits === 1 && kill.moment === "commit") die();
      if (commits === 2 && kill.moment === "committed") die();
    },
  },
);
console.log(JSON.stringify(result));
await lake.close();
