/** The program behind `startFakeS3Process`: serves until its standard input ends. */

import { FakeS3, type FakeS3Options } from "./fake/fake-s3.js";

const s3 = await FakeS3.start(JSON.parse(process.argv[2] ?? "{}") as FakeS3Options);
const { endpoint, region, accessKeyId, secretAccessKey } = s3;
console.log(JSON.stringify({ endpoint, region, accessKeyId, secretAccessKey }));
process.stdin.resume().once("end", () => void s3.stop());
