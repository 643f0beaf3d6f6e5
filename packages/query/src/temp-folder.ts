/** A folder for local copies and for what DuckDB spills, removed when the engine closes or the process ends. */

import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { StoreError } from "@eider/core";

/** Folders of this process that are still there, removed at exit. */
const open = new Set<string>();

function removeAll(): void {
  for (const path of open) rmSync(path, { recursive: true, force: true });
}

export class TempFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** @throws StoreError `temp_folder` */
  static async create(parent: string): Promise<TempFolder> {
    try {
      await mkdir(parent, { recursive: true });
      await removeStale(parent);
      const path = await mkdtemp(join(parent, `${prefix()}${process.pid}-`));
      if (open.size === 0) process.once("exit", removeAll);
      open.add(path);
      return new TempFolder(path);
    } catch (cause) {
      throw new StoreError("temp_folder", `no temporary folder can be made in ${parent}: choose another (cacheDir)`, {
        cause,
        subject: parent,
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    open.delete(this.path);
    if (open.size === 0) process.off("exit", removeAll);
    await rm(this.path, { recursive: true, force: true });
  }
}

/** Process ids mean something only on one host (or in one container, which has a host name of its own). */
function prefix(): string {
  return `eider-query-${hostname().replace(/[^A-Za-z0-9]/g, "_")}-`;
}

/** Removes what processes of this host left that were killed. */
async function removeStale(parent: string): Promise<void> {
  const start = prefix();
  for (const name of await readdir(parent)) {
    if (!name.startsWith(start)) continue;
    const pid = Number.parseInt(name.slice(start.length), 10);
    if (Number.isSafeInteger(pid) && !isAlive(pid)) {
      await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
