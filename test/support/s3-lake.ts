import type { S3Access } from "@eider/test-s3";
import { vi } from "vitest";

/** The URL of a lake in a bucket. The keys for it are in the environment, until `vi.unstubAllEnvs`. */
export function s3LakeUrl(s3: S3Access, bucket: string, path: string): string {
  vi.stubEnv("AWS_ACCESS_KEY_ID", s3.accessKeyId);
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", s3.secretAccessKey);
  return `s3://${bucket}/${path}?${new URLSearchParams({ endpoint: s3.endpoint, region: s3.region, "path-style": "true" })}`;
}
