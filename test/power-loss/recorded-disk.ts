/**
 * Watches what this process does to the files of a folder: Node's own functions, which the stores call, and so does a
 * SQLite that is compiled to WebAssembly (`wasm-sqlite.ts`). The calls reach the real folder; what would be left of them
 * after a power cut at any moment is imitated from the record.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { FileHandle } from "node:fs/promises";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { type Change, DiskState, type NodeId, ROOT } from "./disk-state.js";

// The objects whose members can be replaced.
const fs: typeof import("node:fs") = createRequire(import.meta.url)("node:fs");
const real = { ...fs };
const realPromises = { ...fs.promises };

/** Calls that change files and that nothing here is known to make: a recording that misses one would prove nothing. */
const UNKNOWN_SYNC = [
  "appendFileSync",
  "copyFileSync",
  "cpSync",
  "linkSync",
  "renameSync",
  "rmSync",
  "symlinkSync",
  "truncateSync",
  "writeFileSync",
  "writevSync",
] as const;
const UNKNOWN_ASYNC = ["appendFile", "copyFile", "cp", "rm", "symlink", "truncate"] as const;

/** A process as the disk sees it: it is killed at a change, and from then on none of its calls takes effect. */
interface Process {
  readonly killAt: number;
  readonly onDeath: () => void;
  readonly handles: Set<FileHandle>;
  dead: boolean;
}

export interface RecordOptions {
  /** A planted fault: syncs that do nothing, though they say that they did. */
  readonly ignoreSync?: (path: string, isFolder: boolean) => boolean;
}

export class RecordedDisk implements Disposable {
  readonly #root: string;
  readonly #options: RecordOptions;
  readonly #changes: Change[] = [];
  /** What each path is now; the root's is "". */
  readonly #nodes = new Map<string, NodeId>([["", ROOT]]);
  readonly #folders = new Set<NodeId>([ROOT]);
  readonly #open = new Map<number, string>();
  readonly #process = new AsyncLocalStorage<Process>();
  readonly #before: { files: Map<NodeId, Buffer>; folders: Map<NodeId, Map<string, NodeId>> };
  /** Where files that are written from their start to their end have come to. */
  readonly #positions = new Map<NodeId, number>();
  readonly #restore: (() => void)[] = [];
  #nextNode = ROOT + 1;

  /** Records until it is disposed of. What is in the folder now is taken as synced. */
  constructor(root: string, options: RecordOptions = {}) {
    this.#root = root;
    this.#options = options;
    this.#before = { files: new Map(), folders: new Map() };
    this.#readBefore("");
    this.#replaceCalls();
  }

  /** How many changes were made so far: a moment. */
  get now(): number {
    return this.#changes.length;
  }

  /** Runs a process, until it ends or is killed after so many changes of the disk. */
  async run(work: () => Promise<void>, changes = Number.POSITIVE_INFINITY): Promise<void> {
    let onDeath: () => void = () => undefined;
    const death = new Promise<void>((resolve) => {
      onDeath = resolve;
    });
    const process: Process = { killAt: this.now + changes, onDeath, handles: new Set(), dead: false };
    const life = this.#process.run(process, work).catch((error: unknown) => {
      if (!process.dead) throw error;
    });
    await Promise.race([life, death]);
    if (process.dead) await this.#bury(process);
  }

  /** The states of the disk at rising moments, one after the other. */
  *statesAt(moments: readonly number[]): Iterable<DiskState> {
    const state = new DiskState(this.#before.files, this.#before.folders);
    let next = 0;
    for (const moment of moments) {
      for (; next < moment; next++) state.apply(this.#changes[next]!, (node) => this.#folders.has(node));
      yield state;
    }
  }

  [Symbol.dispose](): void {
    for (const restore of this.#restore) restore();
    syncBuiltinESMExports();
  }

  /** What the system does for a process that is gone: its files are closed, its locks are nobody's. */
  async #bury({ handles }: Process): Promise<void> {
    for (const handle of handles) await handle.close().catch(() => undefined);
    for (const [fd, path] of this.#open) {
      real.closeSync(fd);
      real.rmSync(join(this.#root, `${path}.lock`), { recursive: true, force: true });
    }
    this.#open.clear();
  }

  #readBefore(path: string): void {
    const names = new Map<string, NodeId>();
    for (const entry of real.readdirSync(join(this.#root, path), { withFileTypes: true })) {
      const child = join(path, entry.name);
      const node = this.#newNode(child, entry.isDirectory());
      names.set(entry.name, node);
      if (entry.isDirectory()) this.#readBefore(child);
      else this.#before.files.set(node, real.readFileSync(join(this.#root, child)));
    }
    this.#before.folders.set(this.#nodes.get(path)!, names);
  }

  #newNode(path: string, isFolder: boolean): NodeId {
    const node = this.#nextNode++;
    this.#nodes.set(path, node);
    if (isFolder) this.#folders.add(node);
    return node;
  }

  /** The path below the root, of what is recorded. */
  #pathOf(path: unknown): string | undefined {
    const below = relative(this.#root, String(path));
    return below.startsWith("..") || below.endsWith(".lock") ? undefined : below;
  }

  #record(change: Change): void {
    this.#changes.push(change);
  }

  /** Whether the calling process is alive; it is killed here when its time has come. */
  #lives(): boolean {
    const process = this.#process.getStore();
    if (!process) return true;
    if (!process.dead && this.now >= process.killAt) {
      process.dead = true;
      process.onDeath();
    }
    return !process.dead;
  }

  #name(path: string, node: NodeId | undefined): void {
    const folder = dirname(path) === "." ? "" : dirname(path);
    if (node === undefined) this.#nodes.delete(path);
    else this.#nodes.set(path, node);
    this.#record({ kind: "name", folder: this.#nodes.get(folder)!, name: basename(path), node });
  }

  #opened(path: string, created: boolean, truncated: boolean): void {
    if (created) this.#name(path, this.#newNode(path, false));
    else if (truncated) this.#record({ kind: "resize", node: this.#nodes.get(path)!, size: 0 });
  }

  #synced(path: string, node: NodeId, upTo: number): void {
    const isFolder = this.#folders.has(node);
    if (this.#options.ignoreSync?.(path, isFolder)) return;
    this.#record({ kind: "sync", node, upTo });
  }

  /** SQLite's own layer for unix syncs the folder with the first sync of a log or journal; the one for WebAssembly does not. */
  #syncedBySqlite(path: string, node: NodeId): void {
    this.#synced(path, node, this.now);
    const folder = dirname(path);
    if (/-(wal|journal)$/.test(path)) this.#synced(folder, this.#nodes.get(folder)!, this.now);
  }

  #replace(object: object, calls: Record<string, unknown>): void {
    const before = Object.fromEntries(Object.keys(calls).map((name) => [name, Reflect.get(object, name)]));
    Object.assign(object, calls);
    this.#restore.push(() => Object.assign(object, before));
  }

  #replaceCalls(): void {
    this.#replaceSync();
    this.#replaceAsync();
    syncBuiltinESMExports();
  }

  #replaceSync(): void {
    const guard = (path: string | undefined): void => {
      if (path !== undefined && !this.#lives())
        throw Object.assign(new Error("the process was killed"), { code: "EIO" });
    };
    this.#replace(fs, {
      openSync: (target: string, flags: string | number = "r", mode?: number): number => {
        const path = this.#pathOf(target);
        guard(path);
        const existed = real.existsSync(target);
        const fd = real.openSync(target, flags, mode);
        if (path !== undefined) {
          this.#opened(path, !existed, hasTruncate(flags));
          this.#open.set(fd, path);
        }
        return fd;
      },
      closeSync: (fd: number): void => {
        if (!this.#lives()) return; // closed with the process; the number may be another file's by now
        this.#open.delete(fd);
        real.closeSync(fd);
      },
      writeSync: (fd: number, bytes: Uint8Array, offset: number, length: number, position: number): number => {
        const path = this.#open.get(fd);
        guard(path);
        const written = real.writeSync(fd, bytes, offset, length, position);
        if (path !== undefined) {
          const copy = Uint8Array.prototype.slice.call(bytes, offset, offset + written);
          this.#record({ kind: "write", node: this.#nodes.get(path)!, position, bytes: copy });
        }
        return written;
      },
      ftruncateSync: (fd: number, size = 0): void => {
        const path = this.#open.get(fd);
        guard(path);
        real.ftruncateSync(fd, size);
        if (path !== undefined) this.#record({ kind: "resize", node: this.#nodes.get(path)!, size });
      },
      fsyncSync: (fd: number): void => {
        const path = this.#open.get(fd);
        guard(path);
        if (path !== undefined) this.#syncedBySqlite(path, this.#nodes.get(path)!);
      },
      unlinkSync: (target: string): void => {
        const path = this.#pathOf(target);
        guard(path);
        real.unlinkSync(target);
        if (path !== undefined) this.#name(path, undefined);
      },
      mkdirSync: (target: string, options?: { recursive?: boolean }): string | undefined => {
        const path = this.#pathOf(target);
        guard(path);
        const made = this.#missing(path, target, options);
        const first = real.mkdirSync(target, options) as string | undefined;
        for (const each of made) this.#name(each, this.#newNode(each, true));
        return first;
      },
    });
    for (const name of UNKNOWN_SYNC) this.#refuse(fs, real, name);
  }

  #replaceAsync(): void {
    const alive = async (path: string | undefined): Promise<void> => {
      if (path !== undefined && !this.#lives()) await new Promise<never>(() => undefined);
    };
    const two = (from: unknown, to: unknown): string | undefined => this.#pathOf(from) ?? this.#pathOf(to);
    this.#replace(fs.promises, {
      open: async (target: string, flags: string | number = "r", mode?: number): Promise<FileHandle> => {
        const path = this.#pathOf(target);
        await alive(path);
        const existed = real.existsSync(target);
        const handle = await realPromises.open(target, flags, mode);
        if (path === undefined) return handle;
        if (!this.#lives()) {
          await handle.close();
          await alive(path);
        }
        this.#opened(path, !existed, hasTruncate(flags));
        return this.#watch(handle, path, alive);
      },
      mkdir: async (target: string, options?: { recursive?: boolean }): Promise<string | undefined> => {
        const path = this.#pathOf(target);
        await alive(path);
        const made = this.#missing(path, target, options);
        const first = await realPromises.mkdir(target, options);
        // Two of one process may make the same one.
        for (const each of made) if (!this.#nodes.has(each)) this.#name(each, this.#newNode(each, true));
        return first;
      },
      rmdir: async (target: string): Promise<void> => {
        const path = this.#pathOf(target);
        await alive(path);
        await realPromises.rmdir(target);
        if (path !== undefined) this.#name(path, undefined);
      },
      unlink: async (target: string): Promise<void> => {
        const path = this.#pathOf(target);
        await alive(path);
        await realPromises.unlink(target);
        if (path !== undefined) this.#name(path, undefined);
      },
      link: async (from: string, to: string): Promise<void> => {
        await alive(two(from, to));
        await realPromises.link(from, to);
        const [source, path] = [this.#pathOf(from), this.#pathOf(to)];
        if (path !== undefined) this.#name(path, this.#nodes.get(source!)!);
      },
      rename: async (from: string, to: string): Promise<void> => {
        await alive(two(from, to));
        await realPromises.rename(from, to);
        const [source, path] = [this.#pathOf(from), this.#pathOf(to)];
        if (source === undefined || path === undefined) return;
        const node = this.#nodes.get(source)!;
        this.#name(source, undefined);
        this.#name(path, node);
      },
      writeFile: async (target: string, content: string | Uint8Array): Promise<void> => {
        const path = this.#pathOf(target);
        await alive(path);
        const existed = real.existsSync(target);
        await realPromises.writeFile(target, content);
        if (path === undefined) return;
        this.#opened(path, !existed, true);
        this.#record({ kind: "write", node: this.#nodes.get(path)!, position: 0, bytes: Buffer.from(content) });
      },
    });
    for (const name of UNKNOWN_ASYNC) this.#refuse(fs.promises, realPromises, name);
  }

  /** The handle's own methods are replaced: it is the real one to whoever reads from it. */
  #watch(handle: FileHandle, path: string, alive: (path: string) => Promise<void>): FileHandle {
    const node = this.#nodes.get(path)!;
    this.#process.getStore()?.handles.add(handle);
    const write = handle.write.bind(handle) as (...args: unknown[]) => Promise<{ bytesWritten: number }>;
    const sync = handle.sync.bind(handle);
    const refuse = (): never => {
      throw new Error("a call that the imitation of a disk does not know");
    };
    return Object.assign(handle, {
      write: async (bytes: Uint8Array, offset: number, length: number, position?: number | null) => {
        await alive(path);
        const result = await write(bytes, offset, length, position);
        const at = position ?? this.#advance(node, result.bytesWritten);
        this.#record({ kind: "write", node, position: at, bytes: bytes.slice(offset, offset + result.bytesWritten) });
        return result;
      },
      sync: async () => {
        await alive(path);
        const upTo = this.now;
        await sync();
        this.#synced(path, node, upTo);
      },
      writeFile: refuse,
      appendFile: refuse,
      truncate: refuse,
      writev: refuse,
      createWriteStream: refuse,
    });
  }

  #advance(node: NodeId, bytes: number): number {
    const position = this.#positions.get(node) ?? 0;
    this.#positions.set(node, position + bytes);
    return position;
  }

  /** The folders that making this one will make. */
  #missing(path: string | undefined, target: string, options?: { recursive?: boolean }): string[] {
    if (path === undefined) return [];
    if (!options?.recursive) return [path];
    const missing: string[] = [];
    for (let each = path, at = target; each !== "" && each !== "."; each = dirname(each), at = dirname(at)) {
      if (!real.existsSync(at)) missing.unshift(each);
    }
    return missing;
  }

  #refuse(object: object, originals: object, name: string): void {
    const original = (originals as Record<string, (...args: unknown[]) => unknown>)[name]!;
    this.#replace(object, {
      [name]: (...args: unknown[]) => {
        if (args.slice(0, 2).some((arg) => typeof arg === "string" && this.#pathOf(arg) !== undefined)) {
          throw new Error(`${name}: a call that the imitation of a disk does not know`);
        }
        return original(...args);
      },
    });
  }
}

function hasTruncate(flags: string | number): boolean {
  return typeof flags === "string" ? flags.startsWith("w") : (flags & real.constants.O_TRUNC) !== 0;
}
