import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CreateBucketCommand, GetObjectCommand, ListBucketsCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { describe, expect, test } from "vitest";
import { realS3 } from "../../../test/support/real-s3.js";
import { makeBucket, missingRealS3, startRealS3 } from "../src/index.js";
import { clientOf } from "./support/observer.js";

const s3 = await realS3("a real S3 server");

/** Ceph processes whose command line names the folder. */
function processesOf(folder: string): string[] {
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder);
      } catch {
        return false;
      }
    });
}

test("a machine without the programs is told how to get them", async () => {
  const path = process.env.PATH;
  process.env.PATH = tmpdir();
  try {
    const command = "apt-get install -y --no-install-recommends ceph-mon ceph-osd radosgw";
    expect(missingRealS3()).toBe(command);
    await expect(startRealS3()).rejects.toThrow(command);
  } finally {
    process.env.PATH = path;
  }
});

describe.runIf(s3)("the real S3", () => {
  test("takes and gives objects, and makes buckets that differ", async () => {
    const client = clientOf(s3!);
    const buckets = await Promise.all([makeBucket(s3!), makeBucket(s3!)]);
    expect(new Set(buckets).size).toBe(2);
    const Key = "a b+c/ü=1?#%20.txt";
    await client.send(new PutObjectCommand({ Bucket: buckets[0], Key, Body: "words" }));
    const { Body } = await client.send(new GetObjectCommand({ Bucket: buckets[0], Key }));
    expect(await Body!.transformToString()).toBe("words");
    await expect(client.send(new GetObjectCommand({ Bucket: buckets[1], Key }))).rejects.toMatchObject({
      name: "NoSuchKey",
    });
    const names = (await client.send(new ListBucketsCommand())).Buckets!.map(({ Name }) => Name);
    expect(names).toEqual(expect.arrayContaining(buckets));
  });

  test("refuses a wrong secret", async () => {
    const client = clientOf({ ...s3!, secretAccessKey: "wrong" });
    const refused = client.send(new CreateBucketCommand({ Bucket: "never" }));
    await expect(refused).rejects.toMatchObject({ name: "SignatureDoesNotMatch", $metadata: { httpStatusCode: 403 } });
    await expect(makeBucket({ ...s3!, secretAccessKey: "wrong" })).rejects.toThrow(/403/);
  });

  test("leaves nothing behind when it is stopped", async () => {
    const own = await startRealS3();
    const folder = folderOf(own.endpoint);
    expect(processesOf(folder).length).toBeGreaterThanOrEqual(3);
    await own.stop();
    expect(existsSync(folder)).toBe(false);
    expect(processesOf(folder)).toEqual([]);
    await expect(fetch(own.endpoint)).rejects.toThrow();
  });

  test("leaves nothing behind when its owner is killed", async () => {
    const script = `import { startRealS3 } from "@eider/test-s3";
      console.log((await startRealS3()).endpoint);
      setTimeout(() => undefined, 1e6);`;
    const owner = spawn(process.execPath, ["--input-type=module", "-e", script], {
      cwd: import.meta.dirname,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const endpoint = await new Promise<string>((resolve, reject) => {
      owner.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.trim()));
      owner.once("exit", (code) => reject(new Error(`ended with ${code}`)));
    });
    const folder = folderOf(endpoint);
    expect(processesOf(folder).length).toBeGreaterThanOrEqual(3);
    owner.kill("SIGKILL");
    while (existsSync(folder) || processesOf(folder).length > 0) await sleep(20);
    await expect(fetch(endpoint)).rejects.toThrow();
  });
});

/** Where the real S3 at an endpoint keeps its files: other runs on this machine have their own. */
function folderOf(endpoint: string): string {
  const folders = readdirSync(tmpdir()).filter((name) => name.startsWith("eider-real-s3-"));
  const found = folders
    .map((name) => join(tmpdir(), name))
    .find((folder) => {
      const file = join(folder, "ceph.conf");
      return existsSync(file) && readFileSync(file, "utf8").includes(`endpoint=${new URL(endpoint).host} `);
    });
  if (found === undefined) throw new Error(`no folder for ${endpoint}`);
  return found;
}
