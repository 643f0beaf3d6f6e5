import type { KeepFile } from "@eider/core";
import { LocalFile } from "./local-file.js";
import { spoolToFile } from "./spool.js";

/** A temporary copy of a file that has to be read from anywhere, made when it turns out to be one. */
export class KeptFile implements AsyncDisposable {
  readonly #folder: string;
  readonly #opened: AsyncDisposable[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  readonly keep: KeepFile = async (pieces) => {
    const copy = await spoolToFile(pieces, this.#folder);
    this.#opened.unshift(copy);
    const file = await LocalFile.open(copy.path);
    this.#opened.unshift(file);
    return file;
  };

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#opened.splice(0)) await one[Symbol.asyncDispose]();
  }
}
