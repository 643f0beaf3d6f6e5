/**
 * A shared lake of many files and receipts on a real S3: opened with an empty disk, from its checkpoint; and opened again.
 * In the same rounds the checkpoint alone, fetched and unpacked, which is 1.00. Needs built packages (`npm run build`) and
 * Ceph's programs, without which a fake S3 stands in.
 *
 *   node bench/shared.mjs [--fast] [--rows=1000000] [--rounds=5]        rows: receipts; a tenth as many files
 */

import { createHash } from "node:crypto";
import { createWriteStream, mkdtempSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip, gzipSync } from "node:zlib";
import { SqliteCatalog, shareCopy } from "@eider/catalog";
import { openStore } from "@eider/storage";
import { Lake } from "eider";
import { commitTable, draftOf } from "./support/catalog-entries.mjs";
import { interleave, median, options, ratio, withFolder } from "./support/measure.mjs";
import { withS3 } from "./support/s3.mjs";

const { fast, rows: receipts, rounds } = options({ rows: 1_000_000, rounds: 5 });
const PER_ENTRY = 100;

await withS3(fast, ({ server, newLakeUrl }) =>
  withFolder(async (folder) => measure(folder, server, await newLakeUrl())),
);

async function measure(folder, server, url) {
  const store = await openStore(url);
  const { key, snapshot } = await fill(store, folder, server);
  const warm = join(folder, "warm");
  const openings = {
    "checkpoint alone": async () => {
      const to = join(mkdtempSync(join(folder, "alone-")), "index.sqlite");
      await pipeline((await store.get(key)).body, createGunzip(), createWriteStream(to));
    },
    "empty disk": () => lookUp(url, mkdtempSync(join(folder, "cold-")), snapshot),
    "index there": () => lookUp(url, warm, snapshot),
  };
  await openings["index there"]();
  const figures = await interleave(openings, { rounds, fast });
  const reference = figures["checkpoint alone"].times;
  console.log(`\n${"open, one receipt".padEnd(20)}${"ms".padStart(10)}${"ratio".padStart(8)}`);
  for (const [name, { times }] of Object.entries(figures)) {
    console.log(
      `${name.padEnd(20)}${median(times).toFixed(0).padStart(10)}${ratio(times, reference).toFixed(2).padStart(8)}`,
    );
  }
  await store[Symbol.asyncDispose]();
}

async function lookUp(url, cacheDir, snapshot) {
  const lake = await Lake.open(url, { cacheDir, mode: "open" });
  const receipt = await lake.table("t").receipt(`batch-${receipts - 1}`);
  await lake.close();
  if (receipt?.snapshot !== snapshot) throw new Error("the receipt is not there");
}

/** A lake whose log is a checkpoint and the stub of its last entry, without the data files that it names. */
async function fill(store, folder, server) {
  const local = join(folder, "local.sqlite");
  const catalog = await SqliteCatalog.open({ path: ":memory:" });
  await commitTable(catalog);
  for (let from = 0; from < receipts; from += PER_ENTRY) await catalog.commit(draftOf(from, PER_ENTRY));
  await catalog.exportTo(local);
  await catalog[Symbol.asyncDispose]();
  const { snapshot, stub } = shareCopy(local, "bench");
  const plain = readFileSync(local);
  const packed = gzipSync(plain);
  const number = String(snapshot).padStart(20, "0");
  const sha256 = createHash("sha256").update(packed).digest("hex");
  const key = `_eider/checkpoint/${number}-${sha256}.sqlite.gz`;
  await store.put(key, packed);
  await store.put(`_eider/log/${number}`, stub);
  await store.put("_eider/lake.json", Buffer.from(JSON.stringify({ format: 1, lake: "bench", mode: "shared" })));
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;
  console.log(
    `${receipts} receipts, ${receipts / 10} files, ${snapshot} entries: index ${megabytes(statSync(local).size)}, ` +
      `checkpoint ${megabytes(packed.length)}, on ${server}, ${rounds} rounds`,
  );
  return { key, snapshot };
}
