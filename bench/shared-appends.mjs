/**
 * Durable appends of ten rows to a lake on S3, by 1, 4 and 16 hosts, each a process with an index of its own: one after the
 * other in each host, and 32 at once over all of them. Tells appends and entries a second, and requests per append. As the
 * measure of both machine and server, the time of an append to that of a bare put of 1 kB, which one process makes one
 * after the other in the same rounds. Needs built packages (`npm run build`) and Ceph's programs, without which a fake S3
 * stands in.
 *
 *   node bench/shared-appends.mjs [--fast] [--rows=320] [--rounds=3]        rows: appends of all hosts in a round
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { openStore } from "@eider/storage";
import { interleave, median, options, ratio, withFolder } from "./support/measure.mjs";
import { withS3 } from "./support/s3.mjs";

const { fast, rows, rounds } = options({ rows: 320, rounds: 3 });
const AT_ONCE = 32;
const HOSTS = fast ? [1, 2] : [1, 4, 16];
const appends = fast ? AT_ONCE : AT_ONCE * Math.ceil(rows / AT_ONCE);
const PUTS = 100;

await withS3(fast, async ({ server, newLakeUrl }) => {
  const heads = ["appends/s", "entries/s", "× put", "put", "get", "list", "head"];
  console.log(`${appends} appends of ten rows a round, on ${server}, ${rounds} rounds`);
  console.log(`${"hosts × at once".padEnd(16)}${heads.map((head) => head.padStart(11)).join("")}`);
  for (const count of HOSTS) await withFolder(async (folder) => measure(count, folder, await newLakeUrl()));
  console.log("× put: time for an append to that for a bare put; under 1 is faster. put to head: requests per append");
});

async function measure(count, folder, url) {
  const store = await openStore(url);
  const hosts = await startHosts(url, folder, count);
  let puts = 0;
  const body = Buffer.alloc(1000);
  const contenders = {
    put: async () => {
      for (let i = 0; i < PUTS; i++) await store.put(`puts/${puts++}`, body);
    },
    1: () => appendAll(hosts, 1),
    ...(AT_ONCE > count && { [AT_ONCE / count]: () => appendAll(hosts, AT_ONCE / count) }),
  };
  const answers = new Map();
  const figures = await interleave(contenders, {
    rounds,
    fast,
    after: (name, answer) => answer && answers.set(name, [...(answers.get(name) ?? []), answer]),
  });
  const reference = figures.put.times.map((time) => time / PUTS);
  for (const [lanes, all] of answers) {
    const { times } = figures[lanes];
    const counted = all.slice(-rounds);
    const seconds = median(times) / 1000;
    const entries = median(counted.map((hosts) => new Set(hosts.flatMap(({ snapshots }) => snapshots)).size));
    const perAppend = (kind) =>
      median(counted.map((hosts) => hosts.reduce((sum, { requests }) => sum + requests[kind], 0))) / appends;
    const cells = [
      (appends / seconds).toFixed(0),
      (entries / seconds).toFixed(0),
      ratio(
        times.map((time) => time / appends),
        reference,
      ).toFixed(2),
      ...["put", "get", "list", "head"].map((kind) => perAppend(kind).toFixed(2)),
    ];
    console.log(`${count} × ${lanes}`.padEnd(16) + cells.map((cell) => cell.padStart(11)).join(""));
  }
  for (const host of hosts) host.disconnect();
  await Promise.all(hosts.map((host) => once(host, "exit")));
  await store[Symbol.asyncDispose]();
}

/** Appends of one round, over all hosts. @returns what each host says of it */
function appendAll(hosts, lanes) {
  return Promise.all(
    hosts.map(async (host) => {
      const answer = once(host, "message");
      const lost = once(host, "exit").then(([code]) => Promise.reject(new Error(`a host ended with ${code}`)));
      host.send({ lanes, appends: appends / hosts.length });
      const [message] = await Promise.race([answer, lost]);
      return message;
    }),
  );
}

async function startHosts(url, cacheDir, count) {
  const script = fileURLToPath(new URL("./support/append-host.mjs", import.meta.url));
  const hosts = [];
  for (let host = 0; host < count; host++) {
    const child = fork(script, [JSON.stringify({ url, cacheDir, host })], { execArgv: ["--no-warnings"] });
    await once(child, "message");
    hosts.push(child);
  }
  return hosts;
}
