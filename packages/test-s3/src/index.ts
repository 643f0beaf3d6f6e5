export type { S3Access, TestS3 } from "./access.js";
export { makeBucket } from "./bucket.js";
export { CEPH_PACKAGES } from "./ceph.js";
export { missingRealS3, startRealS3 } from "./real-s3.js";
