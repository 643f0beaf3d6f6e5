/** Objects with awkward keys, imported from a bucket: each gives its own row (D53). */

import { S3Store } from "@eider/storage/s3";
import { FakeS3, makeBucket, type S3Access } from "@eider/test-s3";
import { Lake } from "eider";
import { parquetWriteBuffer } from "hyparquet-writer";
import { describe, expect, test } from "vitest";
import { FILES } from "./support/files.js";
import { realS3 } from "./support/real-s3.js";

const KEYS = [
  "in/t=1/a:b+c.parquet",
  "in/q?x=1.parquet",
  "in/h#1.parquet",
  "in/p%20q.parquet",
  "in/p q.parquet",
  "in/p+q.parquet",
  "in/é&=;,@$!'().parquet",
  "in/[x]*.parquet",
];

/** Written by hyparquet-writer. */
const objectOf = (key: string): Uint8Array =>
  new Uint8Array(parquetWriteBuffer({ columnData: [{ name: "key", data: [key], type: "STRING" }] }));

async function importAll(access: S3Access): Promise<void> {
  const { endpoint, region, accessKeyId, secretAccessKey } = access;
  const bucket = await makeBucket(access);
  await using store = new S3Store({ bucket, endpoint, region, credentials: { accessKeyId, secretAccessKey } });
  await using lake = await Lake.open("memory:", FILES);
  for (const key of KEYS) await store.put(key, objectOf(key));
  const listed: string[] = [];
  for await (const { key } of store.list("in/")) listed.push(key);
  expect([...listed].sort()).toEqual([...KEYS].sort());
  for (const [i, key] of KEYS.entries()) {
    const { body } = await store.get(key);
    await lake.table(`t${i}`).append(body, { format: "parquet", batchId: key });
    expect(await lake.sql(`SELECT key FROM t${i}`), key).toEqual([{ key }]);
    await store.delete(key);
    expect(await store.head(key), key).toBeUndefined();
  }
}

const ceph = await realS3("objects with awkward keys on a real S3");

describe("objects with awkward keys are read as what they are", () => {
  test("from the fake S3", async () => {
    await using fake = await FakeS3.start();
    await importAll(fake);
  });

  test.runIf(ceph)("from Ceph", () => importAll(ceph!));
});
