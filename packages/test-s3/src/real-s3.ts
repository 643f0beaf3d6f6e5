/** A real S3 server: Ceph's gateway over an object store in memory, on the loopback interface. Debian has the programs. */

import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { S3Access, TestS3 } from "./access.js";
import { makeBucket } from "./bucket.js";
import { CEPH_PACKAGES, CEPH_PROGRAMS, cephConfiguration, monitorAddress } from "./ceph.js";
import { GuardedProcesses } from "./guarded-processes.js";

/** It takes 2.5 s alone on two cores. */
const START_TIMEOUT_MS = 120_000;
/** Between two looks whether something is there. */
const POLL_MS = 20;
/** A port that was free may be taken before it is used. */
const ATTEMPTS = 3;

/** The command that brings the programs, where they are missing; undefined where all are there. */
export function missingRealS3(): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const present = (program: string): boolean => folders.some((folder) => isExecutable(join(folder, program)));
  if (CEPH_PROGRAMS.every(present)) return undefined;
  return `apt-get install -y --no-install-recommends ${CEPH_PACKAGES.join(" ")}`;
}

/**
 * Starts a real S3. It is gone with this process at the latest, however that ends, and does not keep it from ending.
 * @throws Error where the programs are missing, or do not start: with what they said
 */
export async function startRealS3(): Promise<TestS3> {
  const command = missingRealS3();
  if (command !== undefined) throw new Error(`A real S3 needs Ceph's programs. On Debian: ${command}`);
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

async function start(): Promise<TestS3> {
  const folder = mkdtempSync(join(tmpdir(), "eider-real-s3-"));
  const processes = new GuardedProcesses(folder, CEPH_PROGRAMS);
  try {
    const deadline = AbortSignal.timeout(START_TIMEOUT_MS);
    const access = await startCluster(folder, processes, deadline);
    const stop = (): Promise<void> => processes.stop();
    return { ...access, makeBucket: () => makeBucket(access), stop, [Symbol.asyncDispose]: stop };
  } catch (error) {
    const said = lastWords(folder);
    await processes.stop();
    throw new Error(`The real S3 did not start: ${(error as Error).message}\n${said}`, { cause: error });
  }
}

async function startCluster(folder: string, processes: GuardedProcesses, signal: AbortSignal): Promise<S3Access> {
  const [monitorV2, monitorV1, gateway] = await freePorts(3);
  const ports = { monitor: [monitorV2!, monitorV1!], gateway: gateway! } as const;
  const [clusterId, osdId] = [randomUUID(), randomUUID()];
  const configuration = join(folder, "ceph.conf");
  writeFileSync(configuration, cephConfiguration(folder, clusterId, ports));
  for (const name of ["mon", "osd", "rgw"]) mkdirSync(join(folder, name));

  const common = ["-c", configuration];
  const run = async (program: string, ...args: string[]): Promise<string> =>
    (await promisify(execFile)(program, [...args, ...common], { signal, cwd: folder })).stdout;
  const map = join(folder, "monmap");
  await run("monmaptool", "--create", "--fsid", clusterId, "--addv", "a", monitorAddress(ports), "--clobber", map);
  await run("ceph-mon", "-i", "a", "--mkfs", "--monmap", map);
  processes.start("ceph-mon", ["-i", "a", "-f", ...common]);
  // The same id here and below, or the object store never joins.
  await run("ceph", "osd", "new", osdId);
  await run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osdId);
  await run("ceph", "osd", "crush", "add", "osd.0", "1.0", "root=default");
  processes.start("ceph-osd", ["-i", "0", "-f", ...common]);
  const until = async (holds: () => Promise<boolean>): Promise<void> => {
    while (!(await holds())) {
      const ended = processes.ended();
      if (ended.length > 0) throw new Error(`${ended.join(", ")} ended`);
      await sleep(POLL_MS, undefined, { signal });
    }
  };
  await until(async () => (await run("ceph", "osd", "stat")).includes("1 up"));

  processes.start("radosgw", ["-n", "client.rgw.a", "-f", ...common]);
  const endpoint = `http://127.0.0.1:${ports.gateway}`;
  await until(() => answers(endpoint));
  const [accessKeyId, secretAccessKey] = [randomBytes(10).toString("hex"), randomBytes(20).toString("hex")];
  const keys = [`--access-key=${accessKeyId}`, `--secret-key=${secretAccessKey}`];
  await run("radosgw-admin", "user", "create", "--uid=tester", "--display-name=tester", ...keys);
  return { endpoint, region: "us-east-1", accessKeyId, secretAccessKey };
}

async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url)).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/** Ports of the loopback interface that nobody uses now; no two are the same. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const server of servers) {
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    ports.push((server.address() as { port: number }).port);
  }
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** The ends of what the programs printed. */
function lastWords(folder: string): string {
  const read = (name: string): string => {
    try {
      return readFileSync(join(folder, `${name}.out`), "utf8")
        .trim()
        .split("\n")
        .slice(-5)
        .join("\n");
    } catch {
      return "";
    }
  };
  return CEPH_PROGRAMS.map((name) => ({ name, text: read(name) }))
    .filter(({ text }) => text !== "")
    .map(({ name, text }) => `${name}: ${text}`)
    .join("\n");
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
