/**
 * The one real S3 of a test run, started when the first test asks for it and stopped when the run ends. It belongs to
 * vitest's own process; the processes that run tests find it by the environment (`real-s3.ts`).
 */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CEPH_PACKAGES, missingRealS3, startRealS3, type TestS3 } from "@eider/test-s3";
import { installDebianPackages } from "./debian.js";
import { REAL_S3_VARIABLE, type RealS3Answer } from "./real-s3.js";

export default async function setup(): Promise<() => Promise<void>> {
  let starting: Promise<TestS3 | undefined> | undefined;
  const server = createServer(async (_, response) => {
    let answer: RealS3Answer;
    try {
      starting ??= startIfPossible();
      const s3 = await starting;
      if (s3 === undefined) answer = { missing: missingRealS3()! };
      else {
        const { endpoint, region, accessKeyId, secretAccessKey } = s3;
        answer = { access: { endpoint, region, accessKeyId, secretAccessKey } };
      }
    } catch (error) {
      answer = { error: (error as Error).message };
    }
    response.end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  process.env[REAL_S3_VARIABLE] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return async () => {
    await close(server);
    await (await starting?.catch(() => undefined))?.stop();
  };
}

async function startIfPossible(): Promise<TestS3 | undefined> {
  if (missingRealS3() !== undefined) await installDebianPackages(CEPH_PACKAGES);
  return missingRealS3() === undefined ? startRealS3() : undefined;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
