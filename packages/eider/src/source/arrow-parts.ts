/** Arrow IPC in parts, each a stream of whole record batches. */

import { type ArrowStreams, cutArrowIPC } from "@eider/core";
import type { BytesInput } from "../commit/pass.js";
import type { InputParts, PartsOptions } from "./input-parts.js";
import { KeptFile } from "./kept-file.js";
import { readOnce } from "./parts.js";
import { spoolBytes } from "./spool.js";

export async function openArrowParts(
  { name }: BytesInput,
  bytes: AsyncIterable<Uint8Array>,
  { partBytes, tempFolder }: PartsOptions,
): Promise<InputParts> {
  const kept = new KeptFile(tempFolder);
  let parts: ArrowStreams;
  try {
    parts = await cutArrowIPC(owned(bytes), partBytes, kept.keep);
  } catch (error) {
    await kept[Symbol.asyncDispose]();
    throw error;
  }
  return {
    more: () => parts.more(),
    next(known) {
      const rowsBefore = parts.rows;
      const stream = known ? readOnce(parts.read()) : spoolBytes(parts.read(), tempFolder);
      const input = { kind: "bytes", bytes: stream, name, totalBytes: undefined, rowsBefore } as const;
      return { input, options: { format: "arrow" } };
    },
    async [Symbol.asyncDispose]() {
      await parts[Symbol.asyncDispose]();
      await kept[Symbol.asyncDispose]();
    },
  };
}

/** Messages are made of the bytes themselves. */
async function* owned(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const piece of bytes) yield new Uint8Array(piece);
}
