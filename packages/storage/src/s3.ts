export type { S3ClientLike, S3Credentials, S3StoreOptions } from "./s3-options.js";
export { S3Store } from "./s3-store.js";
