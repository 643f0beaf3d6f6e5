import { lstat, readdir, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { StoreError } from "@eider/core";
import { errorCode, fileError } from "./file-error.js";

/**
 * Where names that differ only by case, or by the form of an accented letter, are one name (macOS, Windows, FAT, SMB):
 * whether an entry has exactly the name that a key says. Elsewhere every entry that is found has.
 */
export class ExactNames {
  readonly #root: string;
  #merged: boolean | undefined;
  #kept: Promise<void> | undefined;

  constructor(root: string) {
    this.#root = root;
  }

  /** Whether what was found at `folder`/`name` is called so. To be asked about entries that are there. */
  async has(folder: string, name: string): Promise<boolean> {
    if (!(await this.#mergesNames())) return true;
    try {
      return (await readdir(folder)).includes(name);
    } catch (error) {
      if (errorCode(error) === "ENOENT") return false;
      throw fileError(error, name, "read");
    }
  }

  /** @throws StoreError `names_not_kept` where a file gets another name than it was given */
  async assertKept(folder: string): Promise<void> {
    if (!(await this.#mergesNames())) return;
    this.#kept ??= this.#tryName(folder);
    return this.#kept;
  }

  async #tryName(folder: string): Promise<void> {
    const name = `Aa-${process.pid}-${Math.random().toString(36).slice(2)}`;
    try {
      await writeFile(join(folder, name), "");
      if ((await readdir(folder)).includes(name)) return;
    } catch (error) {
      this.#kept = undefined;
      throw fileError(error, "", "write");
    } finally {
      await unlink(join(folder, name)).catch(() => undefined);
    }
    const message = `${this.#root} is on a file system that changes the case of names. Choose another place for the lake.`;
    throw new StoreError("names_not_kept", message, { subject: this.#root });
  }

  /** Seen from what is there already, so that reading writes nothing; where nothing is there, nothing can be merged. */
  async #mergesNames(): Promise<boolean> {
    if (this.#merged !== undefined) return this.#merged;
    const names = new Set(await readdir(this.#root).catch(() => []));
    for (const name of names) {
      const other = name.toUpperCase() === name ? name.toLowerCase() : name.toUpperCase();
      if (names.has(other)) continue;
      this.#merged = await lstat(join(this.#root, other)).then(
        () => true,
        () => false,
      );
      return this.#merged;
    }
    return false;
  }
}

/** The refusal of a key whose place is taken by one that differs only by case or Unicode form. */
export function mergedName(key: string): StoreError {
  const advice =
    "differs only by case or by the form of a letter from what is there, and this file system takes them for one.";
  return new StoreError("key_conflict", `${key} ${advice} Choose another key or another file system.`, {
    subject: key,
  });
}
