/** A file of this machine that is read anywhere. */

import { type FileHandle, open } from "node:fs/promises";
import { InvalidInputError } from "@eider/core";
import { readAt } from "@eider/core/node";

/** Bytes read at a time where more are asked for. */
const PIECE_BYTES = 1024 * 1024;

export class LocalFile implements AsyncDisposable {
  readonly #handle: FileHandle;
  readonly #path: string;
  /** When it was opened. */
  readonly bytes: number;

  private constructor(handle: FileHandle, path: string, bytes: number) {
    this.#handle = handle;
    this.#path = path;
    this.bytes = bytes;
  }

  static async open(path: string): Promise<LocalFile> {
    const handle = await open(path);
    try {
      return new LocalFile(handle, path, (await handle.stat()).size);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** @throws InvalidInputError `source_changed` where the file has become shorter */
  async read(at: number, length: number): Promise<Uint8Array> {
    const bytes = await readAt(this.#handle, at, length);
    if (bytes.length === length) return bytes;
    const message = `${this.#path} became shorter while it was read: append it again when it is at rest`;
    throw new InvalidInputError("source_changed", message, { subject: this.#path });
  }

  /** The bytes from `from` up to `to`, in pieces. */
  async *pieces(from: number, to: number): AsyncIterable<Uint8Array> {
    for (let at = from; at < to; at += PIECE_BYTES) yield await this.read(at, Math.min(PIECE_BYTES, to - at));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}
