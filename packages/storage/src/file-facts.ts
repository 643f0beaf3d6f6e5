import type { BigIntStats } from "node:fs";

/** What `ObjectInfo` takes from a file, without its key. */
export interface FileFacts {
  readonly size: number;
  readonly etag: string;
  readonly modifiedAt: number;
}

/** Size, time in nanoseconds and inode together change with every put, for each put makes a new file. */
export function factsOf(stats: BigIntStats): FileFacts {
  return {
    size: Number(stats.size),
    etag: `${stats.size.toString(36)}-${stats.mtimeNs.toString(36)}-${stats.ino.toString(36)}`,
    modifiedAt: Number(stats.mtimeMs),
  };
}
