/** What a disk holds when the power fails, by the rules of POSIX: what was synced, and of the rest whatever chance leaves. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A file or folder, whatever it is called. */
export type NodeId = number;
export const ROOT: NodeId = 0;

/** One thing that was asked of the disk. */
export type Change =
  /** A name in a folder now means a node, or none. */
  | { readonly kind: "name"; readonly folder: NodeId; readonly name: string; readonly node: NodeId | undefined }
  | { readonly kind: "write"; readonly node: NodeId; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: "resize"; readonly node: NodeId; readonly size: number }
  /** What was done to a file's bytes, or to a folder's names, before change number `upTo` is on the disk. */
  | { readonly kind: "sync"; readonly node: NodeId; readonly upTo: number };

/** What becomes of each thing that was not synced. */
export interface Luck {
  /** Whether a name or a sector got to the disk. */
  readonly survives: () => boolean;
  /** What is in a sector whose writing was cut short: undefined for what was there before. */
  readonly torn: (bytes: number) => Uint8Array | undefined;
}

/** Bytes that a disk writes whole or not. */
const SECTOR = 512;

type Entry = { readonly at: number; readonly name: string; readonly node: NodeId | undefined };
type Piece = { readonly at: number } & (
  | { readonly position: number; readonly bytes: Uint8Array }
  | { readonly size: number }
);

interface FileNode {
  synced: Buffer;
  unsynced: Piece[];
}

interface FolderNode {
  readonly synced: Map<string, NodeId>;
  unsynced: Entry[];
}

export class DiskState {
  readonly #files = new Map<NodeId, FileNode>();
  readonly #folders = new Map<NodeId, FolderNode>();
  #changes = 0;

  /** @param files what is on the disk already, by node @param folders the names in each folder */
  constructor(files: ReadonlyMap<NodeId, Buffer>, folders: ReadonlyMap<NodeId, ReadonlyMap<string, NodeId>>) {
    for (const [node, synced] of files) this.#files.set(node, { synced, unsynced: [] });
    for (const [node, names] of folders) this.#folders.set(node, { synced: new Map(names), unsynced: [] });
  }

  /** Changes come in their order; a node that is met first is a file, unless it was said to be a folder. */
  apply(change: Change, isFolder: (node: NodeId) => boolean): void {
    const at = this.#changes++;
    switch (change.kind) {
      case "name":
        this.#folder(change.folder).unsynced.push({ at, name: change.name, node: change.node });
        if (change.node === undefined) return;
        if (isFolder(change.node)) this.#folder(change.node);
        else this.#file(change.node);
        return;
      case "write":
        this.#file(change.node).unsynced.push({ at, position: change.position, bytes: change.bytes });
        return;
      case "resize":
        this.#file(change.node).unsynced.push({ at, size: change.size });
        return;
      case "sync":
        if (isFolder(change.node)) this.#syncFolder(this.#folder(change.node), change.upTo);
        else this.#syncFile(this.#file(change.node), change.upTo);
    }
  }

  /** Writes what is left after a power cut now into an empty folder. */
  leaveTo(path: string, luck: Luck, folder: NodeId = ROOT): void {
    const { synced, unsynced } = this.#folder(folder);
    const names = new Map(synced);
    for (const { name, node } of unsynced) if (luck.survives()) setName(names, name, node);
    for (const [name, node] of names) {
      const to = join(path, name);
      if (this.#folders.has(node)) {
        mkdirSync(to);
        this.leaveTo(to, luck, node);
      } else writeFileSync(to, this.#left(this.#file(node), luck));
    }
  }

  #left({ synced, unsynced }: FileNode, luck: Luck): Buffer {
    let bytes = synced;
    for (const piece of unsynced) {
      if ("size" in piece) {
        if (luck.survives()) bytes = resize(bytes, piece.size);
        continue;
      }
      for (let start = 0; start < piece.bytes.length; ) {
        const position = piece.position + start;
        const end = Math.min(piece.bytes.length, start + SECTOR - (position % SECTOR));
        const sector = luck.survives() ? piece.bytes.subarray(start, end) : luck.torn(end - start);
        if (sector) bytes = write(bytes, position, sector);
        start = end;
      }
    }
    return bytes;
  }

  #syncFile(file: FileNode, upTo: number): void {
    for (const piece of file.unsynced) {
      if (piece.at >= upTo) break;
      file.synced = "size" in piece ? resize(file.synced, piece.size) : write(file.synced, piece.position, piece.bytes);
    }
    file.unsynced = file.unsynced.filter(({ at }) => at >= upTo);
  }

  #syncFolder(folder: FolderNode, upTo: number): void {
    for (const { at, name, node } of folder.unsynced) if (at < upTo) setName(folder.synced, name, node);
    folder.unsynced = folder.unsynced.filter(({ at }) => at >= upTo);
  }

  #file(node: NodeId): FileNode {
    let file = this.#files.get(node);
    if (!file) {
      file = { synced: Buffer.alloc(0), unsynced: [] };
      this.#files.set(node, file);
    }
    return file;
  }

  #folder(node: NodeId): FolderNode {
    let folder = this.#folders.get(node);
    if (!folder) {
      folder = { synced: new Map(), unsynced: [] };
      this.#folders.set(node, folder);
    }
    return folder;
  }
}

function setName(names: Map<string, NodeId>, name: string, node: NodeId | undefined): void {
  if (node === undefined) names.delete(name);
  else names.set(name, node);
}

function resize(bytes: Buffer, size: number): Buffer {
  return size <= bytes.length ? bytes.subarray(0, size) : Buffer.concat([bytes, Buffer.alloc(size - bytes.length)]);
}

/** A copy: what was synced stays as it was for other images. */
function write(bytes: Buffer, position: number, piece: Uint8Array): Buffer {
  const result = Buffer.concat([bytes, Buffer.alloc(Math.max(0, position + piece.length - bytes.length))]);
  result.set(piece, position);
  return result;
}
