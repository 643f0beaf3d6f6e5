import { EiderError, NotFoundError, StoreError } from "@eider/core";

/** Whether the call that failed was to change the store. */
export type FileAction = "read" | "write";

interface Meaning {
  readonly code: string;
  /** What is wrong and what to do; put after the key. */
  readonly advice: string;
  readonly retryable?: boolean;
}

const full: Meaning = { code: "store_full", advice: "the disk or its quota is full. Free some space, then try again." };
const readOnly: Meaning = {
  code: "store_read_only",
  advice: "this folder cannot be written. Allow this user to write it, or open the lake to read only.",
};
const denied: Meaning = { code: "store_denied", advice: "this user may not read it. Change its permissions." };
const conflict: Meaning = {
  code: "key_conflict",
  advice:
    "a file is where a folder should be, or the reverse. In a folder, no key can be the start of another key's path.",
};
const manyFiles: Meaning = {
  code: "too_many_files",
  advice: "too many files are open. Raise the limit (ulimit -n) or do less at once.",
  retryable: true,
};
const busy: Meaning = { code: "store_busy", advice: "the file is in use. Try again.", retryable: true };
const disk: Meaning = {
  code: "store_io",
  advice: "the disk or network drive failed. Check it, then try again.",
  retryable: true,
};

/** By Node's error code. `EACCES` and `EPERM` depend on the action. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  ENOSPC: full,
  EDQUOT: full,
  EROFS: readOnly,
  EEXIST: conflict,
  ENOTDIR: conflict,
  EISDIR: conflict,
  ENOTEMPTY: conflict,
  ENAMETOOLONG: {
    code: "name_too_long",
    advice: "the path is too long for this file system. Use a shorter key or root.",
  },
  ELOOP: { code: "symlink_refused", advice: "a symbolic link is in its place, and links are not followed." },
  EXDEV: { code: "other_drive", advice: "its folder is on another drive than the root. Keep a lake on one drive." },
  EFBIG: { code: "object_too_large", advice: "the file system holds no file of this size. Write smaller objects." },
  EMFILE: manyFiles,
  ENFILE: manyFiles,
  EBUSY: busy,
  EAGAIN: busy,
  ETXTBSY: busy,
  EIO: disk,
  ESTALE: disk,
  ETIMEDOUT: disk,
};

/** Node's code of a failed system call, if it is one. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Nothing is at that path. */
export function isAbsent(error: unknown): boolean {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** What a failed call of the file system means for the object or folder `subject`. Eider's own errors stay. */
export function fileError(error: unknown, subject: string, action: FileAction): EiderError {
  if (error instanceof EiderError) return error;
  const code = errorCode(error);
  const shown = subject === "" ? "The root" : subject;
  if (code === "ENOENT" && action === "read") return notFound(subject, error);
  const permission = action === "write" ? readOnly : denied;
  const meaning = code === "EACCES" || code === "EPERM" ? permission : MEANINGS[code ?? ""];
  const details = { subject, cause: error, retryable: meaning?.retryable ?? false };
  const advice = meaning?.advice ?? `the file system failed${code === undefined ? "" : ` with ${code}`}.`;
  return new StoreError(meaning?.code ?? "store_failed", `${shown}: ${advice}`, details);
}

/** The answer to a `get` of an absent object. */
export function notFound(key: string, cause?: unknown): NotFoundError {
  return new NotFoundError("object_not_found", `There is no object ${key}: look at the keys with list.`, {
    subject: key,
    cause,
  });
}
