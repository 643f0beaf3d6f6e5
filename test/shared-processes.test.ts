/**
 * Hosts and processes as they really are: four folders with two processes each, on one lake on a real S3. Each batch id is
 * appended by several of them. `EIDER_SHARED_APPENDS=10` makes it short.
 */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeBucket } from "@eider/test-s3";
import { Lake, type Receipt } from "eider";
import { expect, it, onTestFinished, vi } from "vitest";
import { runChild } from "./support/child.js";
import { temporaryFolder } from "./support/folder.js";
import { realS3 } from "./support/real-s3.js";
import { s3LakeUrl } from "./support/s3-lake.js";

const HOSTS = 4;
const PROCESSES = 2;
const APPENDS = Number(process.env.EIDER_SHARED_APPENDS ?? 200);
/** Fewer than appends in all, so that ids meet. */
const IDS = (HOSTS * PROCESSES * APPENDS) / 2;

it(`${HOSTS} hosts with ${PROCESSES} processes each, ${APPENDS} appends each: committed once, one answer, also from new indexes`, async () => {
  const s3 = await realS3("lakes shared by processes");
  if (!s3) return;
  onTestFinished(() => void vi.unstubAllEnvs());
  const lake = s3LakeUrl(s3, await makeBucket(s3), "lake");
  const root = temporaryFolder();
  const folders = Array.from({ length: HOSTS }, (_, host) => join(root, `host-${host}`));
  for (const folder of folders) mkdirSync(folder);

  const children = await Promise.all(
    folders.flatMap((cacheDir, host) =>
      Array.from({ length: PROCESSES }, (_, process) => {
        const from = Math.floor(((host * PROCESSES + process) * IDS) / (HOSTS * PROCESSES));
        return runChild("append-many", { lake, cacheDir, ids: IDS, from, count: APPENDS });
      }),
    ),
  );
  const results = children.flatMap(({ code, lines, stderr }) => {
    expect({ code, errors: /Error/.test(stderr) ? stderr : "" }).toEqual({ code: 0, errors: "" });
    return lines as { status: string; receipt: Receipt }[];
  });
  expect(results).toHaveLength(HOSTS * PROCESSES * APPENDS);
  const ids = new Set(results.map(({ receipt }) => receipt.batchId));
  expect(results.filter(({ status }) => status === "committed")).toHaveLength(ids.size);
  expect(new Set(results.map(({ receipt }) => JSON.stringify(receipt))).size).toBe(ids.size);

  const look = async (cacheDir: string): Promise<unknown> => {
    await using open = await Lake.open(lake, { cacheDir });
    expect((await open.snapshots()).map(({ snapshot }) => snapshot)).toEqual(
      Array.from({ length: ids.size }, (_, i) => i + 1),
    );
    return await open.sql("SELECT count(*) AS n, count(DISTINCT id) AS d, min(id) AS a, max(id) AS z FROM t");
  };
  const answer = [{ n: BigInt(ids.size), d: BigInt(ids.size), a: 0n, z: BigInt(ids.size - 1) }];
  for (const folder of folders) expect(await look(folder)).toEqual(answer);
  for (const folder of folders) rmSync(folder, { recursive: true });
  for (const folder of folders) expect(await look(folder)).toEqual(answer);
}, 900_000);
