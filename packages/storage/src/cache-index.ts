import type { CachePiece } from "./cache-piece.js";

/** What this process knows of a cache's files. Others may have removed some, and added more, since it last looked. */
export class CacheIndex {
  readonly #byKey = new Map<string, Map<string, CachePiece>>();
  /** Files whose bytes this process has compared with their hash. */
  readonly #verified = new Set<string>();
  /** Added while a look is under way that may have missed them. */
  readonly #added: CachePiece[] = [];
  #looks = 0;

  of(keyHash: string): readonly CachePiece[] {
    return [...(this.#byKey.get(keyHash)?.values() ?? [])];
  }

  isVerified(piece: CachePiece): boolean {
    return this.#verified.has(piece.name);
  }

  verify(piece: CachePiece): void {
    this.#verified.add(piece.name);
  }

  /** This process has just made the file, from bytes that it hashed. */
  add(piece: CachePiece): void {
    this.verify(piece);
    this.#insert(piece);
    if (this.#looks > 0) this.#added.push(piece);
  }

  forget(piece: CachePiece): void {
    this.#verified.delete(piece.name);
    const known = this.#byKey.get(piece.keyHash);
    known?.delete(piece.name);
    if (known?.size === 0) this.#byKey.delete(piece.keyHash);
  }

  /** Takes what `look` finds for all there is. */
  async renew(look: () => Promise<readonly CachePiece[]>): Promise<void> {
    this.#looks++;
    const since = this.#added.length;
    try {
      const pieces = [...(await look()), ...this.#added.slice(since)];
      this.#byKey.clear();
      for (const piece of pieces) this.#insert(piece);
      const names = new Set(pieces.map(({ name }) => name));
      for (const name of this.#verified) if (!names.has(name)) this.#verified.delete(name);
    } finally {
      if (--this.#looks === 0) this.#added.length = 0;
    }
  }

  #insert(piece: CachePiece): void {
    const known = this.#byKey.get(piece.keyHash);
    if (known === undefined) this.#byKey.set(piece.keyHash, new Map([[piece.name, piece]]));
    else known.set(piece.name, piece);
  }
}
