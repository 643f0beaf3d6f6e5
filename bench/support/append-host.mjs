/** A host of a shared lake, with an index of its own, that appends when it is told to: for `shared-appends.mjs`. */

import { join } from "node:path";
import { CountingStore, openStore } from "@eider/storage";
import { Lake } from "eider";

const { url, cacheDir, host } = JSON.parse(process.argv[2]);
const store = new CountingStore(await openStore(url));
const lake = await Lake.open({ store }, { cacheDir: join(cacheDir, `host-${host}`) });
const table = lake.table("t");
let next = 0;

process.on("message", async ({ lanes, appends }) => {
  store.reset();
  const snapshots = [];
  const lane = async () => {
    for (let i = 0; i < appends / lanes; i++) {
      const n = next++;
      const rows = Array.from({ length: 10 }, (_, row) => ({ host, n, row, amount: row / 4 }));
      const { receipt } = await table.append(rows, { batchId: `${host}-${n}` });
      snapshots.push(receipt.snapshot);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  const requests = Object.fromEntries(Object.entries(store.counts).map(([kind, { requests }]) => [kind, requests]));
  process.send({ snapshots, requests });
});
process.on("disconnect", () => process.exit());
process.send("ready");
