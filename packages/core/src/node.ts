/** The parts of core that need Node: hashing, random bytes, files. Everything else runs wherever JavaScript does. */

import { createHash, type Hash, hash, randomBytes } from "node:crypto";
import type { FileHandle } from "node:fs/promises";

/**
 * What a content hash covers: `bytes` the decompressed bytes of the input; `rows` JavaScript values, each as the text
 * of `canonicalRow` and a line feed. The kinds never equal each other.
 */
export type ContentKind = "bytes" | "rows";

/** Starts the SHA-256 of a batch's input, to be taken while it streams by. */
export function createContentHash(kind: ContentKind): ContentHash {
  return new ContentHash(kind);
}

/** The hash of a batch's input; see {@link createContentHash}. */
export class ContentHash {
  readonly #kind: ContentKind;
  /** Made when it is first needed: of a short text it costs more than hashing that at once. */
  #hash: Hash | undefined;
  /** Short texts are joined first: a call into the hash costs more than a row. */
  #pending = "";

  constructor(kind: ContentKind) {
    this.#kind = kind;
  }

  /** The next piece of the input, cut anywhere. Text counts as its UTF-8. */
  update(piece: Uint8Array | string): void {
    if (typeof piece === "string") {
      this.#pending += piece;
      if (this.#pending.length > 32 * 1024) this.#flush();
    } else {
      this.#flush();
      this.#started().update(piece);
    }
  }

  /** `bytes:<64 hex digits>` or `rows:<64 hex digits>`. Ends the hash: nothing may follow. */
  digest(): string {
    if (!this.#hash) return `${this.#kind}:${sha256Hex(this.#pending)}`;
    this.#flush();
    return `${this.#kind}:${this.#hash.digest("hex")}`;
  }

  #flush(): void {
    if (this.#pending === "") return;
    this.#started().update(this.#pending);
    this.#pending = "";
  }

  #started(): Hash {
    this.#hash ??= createHash("sha256");
    return this.#hash;
  }
}

/**
 * Bytes of a file from a place on, however many reads that takes.
 * @returns `length` of them, or fewer if the file ends before
 */
export async function readAt(file: FileHandle, at: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, at + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

/** The SHA-256 of bytes, or of a text's UTF-8, as 64 hex digits. */
export function sha256Hex(data: Uint8Array | string): string {
  return hash("sha256", data, "hex");
}

const CHUNK_DIGEST_BYTES = 16;

/**
 * The digest of a column chunk in data files, 22 characters: half of its SHA-256, in base64url. It finds damage; the footer
 * that has the digests is checked by all of its own.
 */
export class ChunkHash {
  readonly #hash = createHash("sha256");

  update(bytes: Uint8Array): this {
    this.#hash.update(bytes);
    return this;
  }

  digest(): string {
    return this.#hash.digest().subarray(0, CHUNK_DIGEST_BYTES).toString("base64url");
  }
}

/** {@link ChunkHash} of a whole chunk. */
export function chunkDigest(parts: readonly Uint8Array[]): string {
  const hash = new ChunkHash();
  for (const part of parts) hash.update(part);
  return hash.digest();
}

const DRAWN_BYTES = 8 * 1024;
let drawn = new Uint8Array(0);
let used = 0;

/** So many bytes of the platform's secure random source, which is asked for many at once. */
export function secureRandom(size: number): Uint8Array {
  if (size > DRAWN_BYTES) return randomBytes(size);
  if (used + size > drawn.length) {
    drawn = randomBytes(DRAWN_BYTES);
    used = 0;
  }
  used += size;
  return drawn.slice(used - size, used);
}
