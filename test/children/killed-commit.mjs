// Appends one batch and is killed (SIGKILL, by itself) right before the commit of its entry, or right after it, when nobody
// was told yet. A lake with a catalog commits in SQLite; one without it by the put of an entry.
import { join } from "node:path";
import { openSqlite, SqliteCatalog } from "@eider/catalog";
import { FaultStore, FileStore } from "@eider/storage";
import { Lake } from "eider";

const { lake: where, shared, cacheDir, options, partitionBy, rows, batchId, moment } = JSON.parse(process.argv[2]);
const die = (at) => at === moment && process.kill(process.pid, "SIGKILL");
const isEntry = ({ kind, keys: [key] }) => kind === "put" && /^_eider\/log\/\d+$/.test(key);

/** The binding, killed around the COMMIT of the transaction that has inserted an entry. */
function openDriver(path, options) {
  const driver = openSqlite(path, options);
  let entry = false;
  return {
    ...driver,
    run(sql, ...values) {
      entry ||= /^\s*INSERT INTO entries\b/.test(sql);
      return driver.run(sql, ...values);
    },
    exec(sql) {
      const commits = entry && sql === "COMMIT";
      if (commits) die("before");
      driver.exec(sql);
      if (commits) die("after");
    },
  };
}

const store = new FaultStore(new FileStore(where), {
  before: (call) => shared && isEntry(call) && die("before"),
  after: (call) => shared && isEntry(call) && die("after"),
});
const path = join(where, "_eider", "catalog.sqlite");
const catalog = shared ? undefined : await SqliteCatalog.open({ path, driver: openDriver });
const lake = await Lake.open({ store, ...(catalog && { catalog }) }, { ...options, cacheDir });
await lake.table("t", { partitionBy }).append(rows, { batchId });
console.log(JSON.stringify("survived"));
