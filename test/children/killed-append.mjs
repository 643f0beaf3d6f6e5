// Appends a file and is killed (SIGKILL, by its own store wrapper) right after a data file was put, or when the read
// has come to a part of the input.
import { join } from "node:path";
import { SqliteCatalog } from "@eider/catalog";
import { FaultStore, FileStore } from "@eider/storage";
import { Lake } from "eider";

const { lake: where, table, file, batchId, killAfterPut, killAtBytes, partitionBy } = JSON.parse(process.argv[2]);
const die = () => process.kill(process.pid, "SIGKILL");
const store = new FaultStore(new FileStore(where), {
  after(call) {
    if (killAfterPut && call.kind === "put" && call.keys[0].endsWith(".parquet") && --puts === 0) die();
  },
});
let puts = killAfterPut ?? 0;
const catalog = await SqliteCatalog.open({ path: join(where, "_eider", "catalog.sqlite"), mode: "open" });
const lake = await Lake.open({ store, catalog });
await lake.table(table, partitionBy ? { partitionBy } : {}).append(
  { file },
  {
    batchId,
    onProgress: ({ bytes }) => {
      if (killAtBytes && bytes >= killAtBytes) die();
    },
  },
);
console.log(JSON.stringify("survived"));
