/**
 * The fake is worth what it has in common with S3. So one list of observations runs against the fake and against a server
 * that others wrote, radosgw. Where that one differs from S3 it says so, and must do so: the difference is checked as well.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realS3 } from "../../../test/support/real-s3.js";
import { FakeS3, makeBucket } from "../src/index.js";
import { observations } from "./support/observations.js";
import { observe } from "./support/observer.js";

const radosgw = await realS3("the fake S3 compared with a real one");
let fake: FakeS3;
beforeAll(async () => {
  fake = await FakeS3.start();
});
afterAll(() => fake.stop());

test("every observation has a name of its own", () => {
  expect(new Set(observations.map(({ name }) => name)).size).toBe(observations.length);
});

describe("the fake", () => {
  test.each(observations)("$name", async ({ run }) => {
    await run(observe(fake, await makeBucket(fake)));
  });
});

describe.runIf(radosgw)("radosgw", () => {
  test.each(observations.filter(({ differs }) => differs?.radosgw === undefined))("$name", async ({ run }) => {
    await run(observe(radosgw!, await makeBucket(radosgw!)));
  });

  test.each(observations.filter(({ differs }) => differs?.radosgw !== undefined))(
    "not so: $name ($differs.radosgw)",
    async ({ run }) => {
      await expect(run(observe(radosgw!, await makeBucket(radosgw!)))).rejects.toThrow();
    },
  );
});
