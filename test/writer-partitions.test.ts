/** Many partitions at once, with little memory and few open files (D72). */

import { join } from "node:path";
import { FileStore, type ObjectStore } from "@eider/storage";
import { FakeS3 } from "@eider/test-s3";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { describe, expect, it } from "vitest";
import { runChild } from "./support/child.js";
import { temporaryFolder } from "./support/folder.js";

const ROWS = 20_000;
const PARTITIONS = 2000;
const CAP = 16;

async function ids(objects: AsyncIterable<readonly [string, Uint8Array]> | Map<string, Uint8Array>): Promise<number[]> {
  const all: number[] = [];
  for await (const [key, object] of objects) {
    const bytes = new Uint8Array(object);
    const file = { byteLength: bytes.length, slice: (start: number, end?: number) => bytes.slice(start, end).buffer };
    for (const row of await parquetReadObjects({ file, compressors })) {
      expect(key).toContain(`part=${row.part}/`);
      all.push(Number(row.id));
    }
  }
  return all.sort((a, b) => a - b);
}

async function* objectsOf(store: ObjectStore): AsyncIterable<readonly [string, Uint8Array]> {
  for await (const { key } of store.list("")) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await store.get(key)).body) chunks.push(chunk);
    yield [key, Buffer.concat(chunks)];
  }
}

describe.each(["folder", "S3"])(
  "20,000 rows of 2,000 partitions in random order, in a %s",
  { timeout: 400_000 },
  (where) => {
    it.each(["objects", "table"])("as %s: all rows once, never more open than allowed", async (kind) => {
      const fake = where === "S3" ? await FakeS3.start() : undefined;
      try {
        const folder = join(temporaryFolder(), "store");
        const s3 = fake && {
          bucket: await fake.makeBucket(),
          endpoint: fake.endpoint,
          region: fake.region,
          credentials: { accessKeyId: fake.accessKeyId, secretAccessKey: fake.secretAccessKey },
        };
        const argument = { where: folder, s3, rows: ROWS, partitions: PARTITIONS, cap: CAP, kind };
        const child = await runChild("write-partitions", argument, {
          flags: ["--max-old-space-size=256"],
          openFiles: 256,
          env: { NODE_NO_WARNINGS: "1" },
        });
        expect(child).toMatchObject({ code: 0, stderr: "" });
        const [result] = child.lines as { most: number; open: number; objects: number }[];
        expect(result!.most).toBeLessThanOrEqual(CAP);
        expect(result!.open).toBeLessThanOrEqual(CAP);
        expect(result!.objects).toBeGreaterThanOrEqual(PARTITIONS);
        if (kind === "table") {
          const expected = {
            status: "committed",
            rowsAdded: ROWS,
            rows: ROWS,
            partitions: PARTITIONS,
            batches: 1,
            ok: true,
          };
          expect(result).toMatchObject(expected);
        } else {
          expect(result).toMatchObject({ rows: ROWS });
          const objects = fake ? fake.objects(s3!.bucket) : objectsOf(new FileStore(folder));
          expect(await ids(objects)).toEqual(Array.from({ length: ROWS }, (_, id) => id));
        }
        if (fake && s3) expect(fake.uploads(s3.bucket)).toEqual([]);
      } finally {
        await fake?.[Symbol.asyncDispose]();
      }
    });
  },
);
