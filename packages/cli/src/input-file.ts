/** What is to be appended: a file with its fingerprint, or a stream that can be read once. */

import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { access, constants, stat } from "node:fs/promises";
import { basename } from "node:path";
import { InvalidInputError, NotFoundError } from "eider";

/** An argument that names input. */
export interface InputFile {
  /** As it was given. */
  readonly argument: string;
  /** For messages. */
  readonly name: string;
  /** `stdin`; a regular `file`; a `stream` with a path: a named pipe, a device, what `<(command)` gives. */
  readonly kind: "stdin" | "file" | "stream";
}

/**
 * Looks whether the input can be read, before anything is made or changed.
 * @throws NotFoundError `file_not_found`
 * @throws InvalidInputError `bad_source`, `file_unreadable`
 */
export async function inputFile(argument: string): Promise<InputFile> {
  if (argument === "-") return { argument, name: "standard input", kind: "stdin" };
  try {
    const info = await stat(argument);
    if (info.isDirectory()) {
      throw new InvalidInputError("bad_source", `${argument} is a folder: name its files, for example ${argument}/*`, {
        subject: argument,
      });
    }
    await access(argument, constants.R_OK);
    return { argument, name: basename(argument), kind: info.isFile() ? "file" : "stream" };
  } catch (error) {
    throw fileError(argument, error);
  }
}

export interface Fingerprint {
  /** Hex. */
  readonly sha256: string;
  /** Whether the file is still as it was when the hash was taken, by its size and its time of change. */
  isCurrent(): boolean;
}

/** Reads a file to its end for its hash. */
export async function fingerprint(
  path: string,
  options: { readonly signal: AbortSignal; readonly onProgress: (bytes: number, totalBytes: number) => void },
): Promise<Fingerprint> {
  const hash = createHash("sha256");
  const before = stateOf(path);
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
      options.signal.throwIfAborted();
      hash.update(chunk);
      bytes += chunk.length;
      options.onProgress(bytes, before?.size ?? bytes);
    }
  } catch (error) {
    options.signal.throwIfAborted();
    throw fileError(path, error);
  }
  return {
    sha256: hash.digest("hex"),
    isCurrent: () => {
      const now = stateOf(path);
      return now?.size === before?.size && now?.mtimeMs === before?.mtimeMs && now?.ino === before?.ino;
    },
  };
}

function stateOf(path: string): { size: number; mtimeMs: number; ino: number } | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function fileError(path: string, cause: unknown): unknown {
  const code = (cause as NodeJS.ErrnoException).code;
  if (cause instanceof InvalidInputError || code === undefined) return cause;
  if (code === "ENOENT" || code === "ENOTDIR") {
    return new NotFoundError("file_not_found", `there is no file ${path}`, { subject: path, cause });
  }
  return new InvalidInputError("file_unreadable", `cannot read ${path} (${code})`, { subject: path, cause });
}
