/** Bytes over the wire: a request's body in, an answer out, whole or as a fault wants it. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "./answer.js";
import type { Fault, FaultAnswer } from "./script.js";

/** The whole body, or what came of it before `cutAt`; undefined where the client went away in the middle. */
export async function readBody(
  incoming: IncomingMessage,
  cutAt: number = Number.POSITIVE_INFINITY,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= cutAt) break;
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}

/** Breaks the connection so that the client sees ECONNRESET. */
export function reset(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}

/** Resolves when the client has gone. */
export function gone(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (isGone(response)) resolve();
    else response.once("close", () => resolve());
  });
}

export interface SendOptions {
  readonly method: string;
  readonly how?: Fault["body"];
  readonly spaces?: FaultAnswer["spaces"];
  /** Called with the bytes of the body as they are sent. */
  readonly onBytes: (bytes: number) => void;
}

/** Sends an answer. It does not throw where the client goes away. */
export async function send(response: ServerResponse, answer: Answer, options: SendOptions): Promise<void> {
  const { how = {}, spaces, onBytes } = options;
  const body = typeof answer.body === "string" ? Buffer.from(answer.body) : (answer.body ?? Buffer.alloc(0));
  // A HEAD has the headers of the GET and never a body; of an error that means no document either.
  const isHead = options.method === "HEAD";
  const hasBody = !isHead && answer.status !== 204 && answer.status !== 304;
  const promised = isHead && answer.status >= 400 ? 0 : body.length;
  // With spaces before it the length is not known when the headers leave.
  if (spaces === undefined && answer.status !== 204) response.setHeader("content-length", promised);
  response.writeHead(answer.status, { ...answer.headers });
  if (!hasBody) return void response.end();
  const write = async (bytes: Uint8Array): Promise<void> => {
    if (isGone(response) || bytes.length === 0) return;
    onBytes(bytes.length);
    if (response.write(bytes) || isGone(response)) return;
    await new Promise<void>((resolve) => {
      response.once("drain", resolve).once("close", resolve);
    });
  };
  let start = 0;
  if (spaces !== undefined) {
    // The declaration must be a document's first bytes, so it goes before the spaces.
    start = body.indexOf("\n") + 1;
    await write(body.subarray(0, start));
    for (let n = 0; n < spaces.count && !isGone(response); n++) {
      await write(Buffer.from(" "));
      await sleep(spaces.everyMs);
    }
  }
  const end = Math.min(how.cutAt ?? body.length, body.length);
  const step = how.pieces?.bytes ?? 1 << 20;
  for (let at = start; at < end && !isGone(response); at += step) {
    await write(body.subarray(at, Math.min(at + step, end)));
    if (how.pieces !== undefined) await sleep(how.pieces.everyMs);
  }
  if (end === body.length) response.end();
  // What was written has to leave before the connection breaks.
  else setImmediate(() => response.socket?.destroySoon());
}

function isGone(response: ServerResponse): boolean {
  return response.destroyed || (response.socket?.destroyed ?? true);
}
