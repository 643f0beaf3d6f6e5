import { afterAll, describe, expect, test } from "vitest";
import { realS3 } from "../../../test/support/real-s3.js";
import { FakeS3, makeBucket, type S3Access } from "../../test-s3/src/index.js";
import { probeStore } from "../src/index.js";
import { S3Store, type S3StoreOptions } from "../src/s3.js";
import { conformanceRun } from "./conformance-run.js";
import { inPieces, MIB, pattern, readAll } from "./s3-fake.js";

const s3 = await realS3("S3Store on a real S3 server");

function storeOn(access: S3Access, options: Partial<S3StoreOptions> & { readonly bucket: string }): S3Store {
  const { endpoint, region, accessKeyId, secretAccessKey } = access;
  return new S3Store({ endpoint, region, credentials: { accessKeyId, secretAccessKey }, ...options });
}

/** Its own folder of one bucket for each store. */
let stores = 0;
const bucket = s3 && (await makeBucket(s3));
function make(options: Partial<S3StoreOptions> = {}): S3Store {
  return storeOn(s3!, { bucket: bucket!, prefix: `stores/${++stores}`, ...options });
}

const fake = await FakeS3.start();
afterAll(() => fake.stop());

conformanceRun("S3Store on the fake S3", async () => storeOn(fake, { bucket: await fake.makeBucket() }));
if (s3 !== undefined) conformanceRun("S3Store on Ceph's gateway", () => make());

describe.runIf(s3)("S3Store on Ceph's gateway", () => {
  test("finds out that uploads ignore conditions, and puts conditional streams in one piece or not at all", async () => {
    await using store = make({ partBytes: 5 * MIB, maxConditionalBytes: 12 * MIB });
    const bytes = pattern(11 * MIB);
    await store.put("a", inPieces(bytes, MIB), { ifAbsent: true });
    expect(store.capabilities.maxConditionalBytes).toBe(12 * MIB);
    await expect(store.put("a", inPieces(bytes, MIB), { ifAbsent: true })).rejects.toMatchObject({
      code: "object_exists",
    });
    const { etag } = (await store.head("a"))!;
    await store.put("a", inPieces(bytes, 700_000), { ifMatch: etag });
    const long = store.put("b", inPieces(pattern(17 * MIB), MIB), { ifAbsent: true });
    await expect(long).rejects.toMatchObject({ code: "condition_too_large" });
    const keys: string[] = [];
    for await (const { key } of store.list("")) keys.push(key);
    expect(keys).toEqual(["a"]);
  });

  test("uploads in parts, whose etag and time it has to look up", async () => {
    await using store = make({ partBytes: 5 * MIB });
    const bytes = pattern(33 * MIB + 1);
    const info = await store.put("a", inPieces(bytes, 999_999));
    expect(info.etag).toMatch(/^[0-9a-f]{32}-7$/);
    expect(await store.head("a")).toEqual(info);
    expect(Buffer.compare(await readAll((await store.get("a")).body), bytes)).toBe(0);
  });

  test("may have several writers", async () => {
    await using store = make();
    await probeStore(store);
    for await (const { key } of store.list("")) throw new Error(`${key} was left behind`);
  });

  test("says what is wrong with credentials and buckets", async () => {
    const credentials = { accessKeyId: s3!.accessKeyId, secretAccessKey: "wrong-secret" };
    await using wrong = make({ credentials });
    await expect(wrong.get("a")).rejects.toMatchObject({ code: "bad_credentials" });
    await using unknown = make({ credentials: { ...credentials, accessKeyId: "nobody" } });
    await expect(unknown.put("a", pattern(10))).rejects.toMatchObject({ code: "bad_credentials" });
    await using nowhere = make({ bucket: "no-such-bucket-here" });
    await expect(nowhere.put("a", pattern(10))).rejects.toMatchObject({ code: "bucket_not_found" });
    await using anonymous = new S3Store({ bucket: bucket!, endpoint: s3!.endpoint, anonymous: true });
    await expect(anonymous.get("a")).rejects.toMatchObject({ code: "store_denied" });
  });
});
