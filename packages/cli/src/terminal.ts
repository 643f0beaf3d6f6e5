/** What the command needs of the process it runs in: `process` itself, or stand-ins in tests. */

import type { Readable, Writable } from "node:stream";
import { InvalidInputError, StoreError } from "eider";

export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  on(event: "SIGINT" | "SIGTERM", listener: () => void): unknown;
  off(event: "SIGINT" | "SIGTERM", listener: () => void): unknown;
}

/** Text gathered before it is written, in characters: one system call for many rows. */
const CHUNK = 64 * 1024;

/** The reader of our output (`| head`) has seen enough. */
export class OutputClosed extends Error {}

/**
 * Writes text or bytes; settles when they have left, so that a slow reader slows us down.
 * @throws OutputClosed
 * @throws StoreError `output_failed`
 */
export function write(stream: Writable, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (cause?: NodeJS.ErrnoException | null) => {
      if (!cause) resolve();
      else if (cause.code === "EPIPE" || cause.code === "ERR_STREAM_DESTROYED") reject(new OutputClosed());
      else {
        const reason = cause.code ?? cause.message;
        reject(new StoreError("output_failed", `cannot write the output (${reason}): it is incomplete`, { cause }));
      }
    });
  });
}

/** Writes many small pieces of text. */
export async function writeAll(stream: Writable, pieces: AsyncIterable<string>): Promise<void> {
  let waiting = "";
  for await (const piece of pieces) {
    waiting += piece;
    if (waiting.length < CHUNK) continue;
    await write(stream, waiting);
    waiting = "";
  }
  if (waiting !== "") await write(stream, waiting);
}

/**
 * The bytes of a stream that can be read once. On `signal` it ends with the signal's reason, however long the next piece
 * may take to come.
 * @throws InvalidInputError `input_failed`
 */
export async function* readInput(
  stream: Readable,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  signal.throwIfAborted();
  const stop = (): void => void stream.destroy(signal.reason);
  signal.addEventListener("abort", stop);
  try {
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (cause) {
    signal.throwIfAborted();
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new InvalidInputError("input_failed", `cannot read ${name} (${code ?? message})`, { cause });
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
