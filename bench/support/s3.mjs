/** An S3 server for benchmarks: Ceph, or where its programs are not there, or with `--fast`, a fake in a process of its own. */

/**
 * Runs `work` with a server, whose keys are in the environment as long as the process lives.
 * @param work is told the server's name, and what makes a bucket and gives the URL of a lake in it
 */
export async function withS3(fast, work) {
  const { missingRealS3, startFakeS3Process, startRealS3, makeBucket } = await import(
    "../../packages/test-s3/dist/index.js"
  );
  const real = !fast && missingRealS3() === undefined;
  const s3 = await (real ? startRealS3() : startFakeS3Process());
  process.env.AWS_ACCESS_KEY_ID = s3.accessKeyId;
  process.env.AWS_SECRET_ACCESS_KEY = s3.secretAccessKey;
  const query = new URLSearchParams({ endpoint: s3.endpoint, region: s3.region, "path-style": "true" });
  const newLakeUrl = async () => `s3://${await makeBucket(s3)}/lake?${query}`;
  try {
    await work({ server: real ? "Ceph" : "a fake S3", newLakeUrl });
  } finally {
    await s3[Symbol.asyncDispose]();
  }
}
