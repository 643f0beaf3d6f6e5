import type { IncomingHttpHeaders } from "node:http";
import { S3Error } from "./answer.js";

/** A request as the operation that it asks for. */
export interface S3Request {
  /** Counts the requests of a server, from 1, by arrival. */
  readonly number: number;
  /** As AWS calls it: `PutObject`, `UploadPart`, …; "Unknown" where this server has no such thing. */
  readonly operation: string;
  readonly method: string;
  /** Path and query on the wire. */
  readonly target: string;
  /** Empty where there is none. */
  readonly bucket: string;
  /** Decoded; empty where there is none. */
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  /** Lower-case names; values that came more than once are joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
}

/** @throws S3Error where the path cannot be decoded */
export function parseRequest(number: number, method: string, target: string, incoming: IncomingHttpHeaders): S3Request {
  const [path = "", ...queries] = target.split("?");
  const query = new Map<string, string>();
  for (const pair of queries.join("?").split("&")) {
    if (pair === "") continue;
    const [name = "", ...values] = pair.split("=");
    query.set(decode(name, target), decode(values.join("="), target));
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming)) headers[name] = Array.isArray(value) ? value.join(",") : value!;
  const slash = path.indexOf("/", 1);
  const bucket = decode(slash < 0 ? path.slice(1) : path.slice(1, slash), target);
  const key = slash < 0 ? "" : decode(path.slice(slash + 1), target);
  const operation = operationOf(method, bucket, key, query, headers);
  return { number, operation, method, target, bucket, key, query, headers };
}

/** S3 reads a plus in a path or a query literally; only forms mean a space by it. */
function decode(text: string, target: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error(400, "InvalidURI", "Couldn't parse the specified URI.", { URI: target });
  }
}

function operationOf(
  method: string,
  bucket: string,
  key: string,
  query: ReadonlyMap<string, string>,
  headers: Readonly<Record<string, string>>,
): string {
  if (bucket === "") return method === "GET" ? "ListBuckets" : "Unknown";
  if (key === "") {
    if (method === "POST") return query.has("delete") ? "DeleteObjects" : "Unknown";
    if (method !== "GET") return BUCKET_OPERATIONS[method] ?? "Unknown";
    if (query.has("uploads")) return "ListMultipartUploads";
    return query.get("list-type") === "2" ? "ListObjectsV2" : "Unknown";
  }
  if (headers["x-amz-copy-source"] !== undefined) return "Unknown";
  if (query.has("uploadId")) return UPLOAD_OPERATIONS[method] ?? "Unknown";
  if (method === "POST") return query.has("uploads") ? "CreateMultipartUpload" : "Unknown";
  return OBJECT_OPERATIONS[method] ?? "Unknown";
}

const BUCKET_OPERATIONS: Readonly<Record<string, string>> = {
  PUT: "CreateBucket",
  HEAD: "HeadBucket",
  DELETE: "DeleteBucket",
};
const OBJECT_OPERATIONS: Readonly<Record<string, string>> = {
  PUT: "PutObject",
  GET: "GetObject",
  HEAD: "HeadObject",
  DELETE: "DeleteObject",
};
const UPLOAD_OPERATIONS: Readonly<Record<string, string>> = {
  PUT: "UploadPart",
  GET: "ListParts",
  POST: "CompleteMultipartUpload",
  DELETE: "AbortMultipartUpload",
};
