import { describe, expect, test } from "vitest";
import { realS3 } from "../../../test/support/real-s3.js";
import { makeBucket } from "../../test-s3/src/index.js";
import { conformanceChecks, runCheck } from "../src/conformance.js";
import { S3Store, type S3StoreOptions } from "../src/s3.js";

const s3 = await realS3("S3Store on a real S3 server");

/** Its own folder of one bucket for each store. */
let stores = 0;
const bucket = s3 && (await makeBucket(s3));
function make(options: Partial<S3StoreOptions> = {}): S3Store {
  const { endpoint, region, accessKeyId, secretAccessKey } = s3!;
  const credentials = { accessKeyId, secretAccessKey };
  return new S3Store({ bucket: bucket!, prefix: `stores/${++stores}`, endpoint, region, credentials, ...options });
}

describe.runIf(s3)("S3Store keeps the contract on a real server", () => {
  test.each(conformanceChecks)("$name", async (check) => {
    const result = await runCheck(check, async () => make(), { fast: true });
    if (!result.ok) throw result.error;
    expect(result.skipped).toBe(false);
  });
});
