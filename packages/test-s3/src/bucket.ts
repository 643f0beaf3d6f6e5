import { randomUUID } from "node:crypto";
import type { S3Access } from "./access.js";
import { signedHeaders } from "./signature.js";

/** Makes an empty bucket with a name that no other has, from any process that may use the S3; gives its name. */
export async function makeBucket(access: S3Access): Promise<string> {
  const name = `eider-${randomUUID()}`;
  const url = new URL(`/${name}`, access.endpoint);
  const answer = await fetch(url, { method: "PUT", headers: signedHeaders("PUT", url, access) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${access.endpoint} made no bucket: ${answer.status} ${text}`);
  return name;
}
