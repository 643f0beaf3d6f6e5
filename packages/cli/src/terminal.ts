/** What the command needs of the process it runs in: `process` itself, or stand-ins in tests. */

import type { Readable, Writable } from "node:stream";

export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  on(event: "SIGINT" | "SIGTERM", listener: () => void): unknown;
  off(event: "SIGINT" | "SIGTERM", listener: () => void): unknown;
}

/** Writes text or bytes and waits while the reader is slow. */
export async function write(stream: Writable, data: string | Uint8Array): Promise<void> {
  if (stream.write(data)) return;
  await new Promise<void>((resolve, reject) => {
    const done = (error?: Error): void => {
      stream.off("drain", done);
      stream.off("error", done);
      stream.off("close", done);
      if (error) reject(error);
      else resolve();
    };
    stream.once("drain", done);
    stream.once("error", done);
    stream.once("close", done);
  });
}
