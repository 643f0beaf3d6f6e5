export type { S3Access, TestS3 } from "./access.js";
export { makeBucket } from "./bucket.js";
export { CEPH_PACKAGES } from "./ceph.js";
export { FakeS3, type FakeS3Options } from "./fake/fake-s3.js";
export type { S3Request } from "./fake/request.js";
export type { LoggedRequest, RequestLog } from "./fake/request-log.js";
export type { Fault, FaultAnswer, FaultRule, RequestMatch } from "./fake/script.js";
export { missingRealS3, startRealS3 } from "./real-s3.js";
export { type SigningOptions, signedHeaders } from "./signature.js";
