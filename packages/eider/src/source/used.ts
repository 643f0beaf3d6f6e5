/** Sources that somebody has used up: they look like empty ones. */

import { Readable } from "node:stream";
import { InvalidInputError } from "@eider/core";

/** What was read before gives nothing, which is no empty batch. */
export function used(what: string): InvalidInputError {
  return new InvalidInputError("bad_source", `${what}, and nothing is left to append: pass what was not read yet`);
}

/** Whether somebody has read from a stream of Node.js or the web. */
export function wasRead(stream: object): boolean {
  return Readable.isDisturbed(stream as Readable);
}

/** Whether a view has lost its memory, to a worker for one: it has a length of 0 then, and no other can be made. */
export function isDetached(bytes: Uint8Array): boolean {
  if (bytes.byteLength > 0) return false;
  try {
    void new Uint8Array(bytes.buffer);
    return false;
  } catch {
    return true;
  }
}
