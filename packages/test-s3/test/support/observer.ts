import { Agent, request } from "node:http";
import { S3Client } from "@aws-sdk/client-s3";
import { type S3Access, signedHeaders } from "../../src/index.js";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
  /** The code of an error document, where there is one. */
  readonly code: string | undefined;
}

export interface RawOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly time?: Date;
  /** Sends the body without its length, in HTTP's own chunks. */
  readonly chunked?: boolean;
  /** Changed on their way, after they were signed. */
  readonly tamper?: Readonly<Record<string, string>>;
}

/** Looks at an S3 by its answers: through AWS's own client, and bare. */
export interface Observer {
  readonly access: S3Access;
  readonly bucket: string;
  readonly client: S3Client;
  /** A signed request: the path is what follows the bucket, encoded. */
  raw(method: string, path: string, options?: RawOptions): Promise<RawAnswer>;
}

export function clientOf({ endpoint, region, accessKeyId, secretAccessKey }: S3Access): S3Client {
  const credentials = { accessKeyId, secretAccessKey };
  return new S3Client({
    endpoint,
    region,
    credentials,
    forcePathStyle: true,
    maxAttempts: 1,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  });
}

export function observe(access: S3Access, bucket: string): Observer {
  const raw = async (method: string, path: string, options: RawOptions = {}): Promise<RawAnswer> => {
    const url = `${access.endpoint}/${bucket}${path}`;
    const { body = "", chunked = false, tamper = {} } = options;
    const length = chunked ? { "transfer-encoding": "chunked" } : { "content-length": String(Buffer.byteLength(body)) };
    const headers = { ...signedHeaders(method, new URL(url), access, options), ...length, ...tamper };
    return send(method, url, headers, body);
  };
  return { access, bucket, client: clientOf(access), raw };
}

/** A request as it is given, with a connection of its own. */
export function send(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>> = {},
  body: string | Uint8Array = "",
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    // The path as it is: `fetch` and URL would normalise it.
    const { host, hostname, port } = new URL(url);
    const path = url.slice(url.indexOf(host) + host.length);
    const outgoing = request({ agent: new Agent(), hostname, port, path, method, headers }, async (answer) => {
      try {
        const chunks: Buffer[] = [];
        for await (const chunk of answer) chunks.push(chunk as Buffer);
        const bytes = Buffer.concat(chunks);
        const code = /<Error>.*?<Code>(\w+)<\/Code>/s.exec(bytes.toString("latin1"))?.[1];
        resolve({ status: answer.statusCode!, headers: answer.headers, bytes, code });
      } catch (error) {
        reject(error);
      }
    });
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}
