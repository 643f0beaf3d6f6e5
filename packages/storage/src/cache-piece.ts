import { createHash, randomBytes } from "node:crypto";
import type { ObjectInfo } from "./store.js";

/** What a store says of an object beside its key. */
export type ObjectFacts = Omit<ObjectInfo, "key">;

/**
 * A cached file: a whole object, one block of it, or an excerpt. All that must be known of it is in its name, so that it appears
 * with its facts in one step, and one listing of the folder is the whole index.
 */
export interface CachePiece {
  readonly name: string;
  readonly keyHash: string;
  /** Offset in the object; undefined for a whole one and for excerpts. */
  readonly start: number | undefined;
  /** What an excerpt is called, see `cache-excerpt.ts`. */
  readonly excerpt: string | undefined;
  /** Bytes of this file. */
  readonly bytes: number;
  /** SHA-256 of this file, base64url. */
  readonly sha256: string;
  /** Different for each file ever made: a file under two names is counted once. */
  readonly id: string;
  readonly facts: ObjectFacts;
}

/** Begins the name of an excerpt, and no number. */
const EXCERPT = "x";
const WHOLE = "whole";
/** Not in base64url, hexadecimal or numbers. */
const SEPARATOR = "~";
/** The limit of file systems is 255. */
const MAX_NAME = 240;

/** Of a key in one store: the same key in two stores that share a cache differs. */
export function hashKey(namespace: string, key: string): string {
  return createHash("sha256").update(`${namespace}\0${key}`).digest("hex").slice(0, 32);
}

export function newId(): string {
  return randomBytes(8).toString("hex");
}

/** Undefined if its facts do not fit into a name: then it is not cached. */
export function makePiece(piece: Omit<CachePiece, "name">): CachePiece | undefined {
  const { keyHash, start, excerpt, bytes, sha256, id, facts } = piece;
  const part = excerpt === undefined ? (start ?? WHOLE) : `${EXCERPT}${excerpt}`;
  const etag = Buffer.from(facts.etag).toString("base64url");
  const parts = [keyHash, part, bytes, facts.size, facts.modifiedAt, etag, sha256, id];
  const name = parts.join(SEPARATOR);
  return name.length <= MAX_NAME ? { ...piece, name } : undefined;
}

export function parsePiece(name: string): CachePiece | undefined {
  const parts = name.split(SEPARATOR);
  const [keyHash = "", part = "", bytes, size, modifiedAt, etag = "", sha256 = "", id = ""] = parts;
  const facts = { size: Number(size), etag: Buffer.from(etag, "base64url").toString(), modifiedAt: Number(modifiedAt) };
  const piece = {
    name,
    keyHash,
    start: part === WHOLE || part.startsWith(EXCERPT) ? undefined : Number(part),
    excerpt: part.startsWith(EXCERPT) ? part.slice(EXCERPT.length) : undefined,
    bytes: Number(bytes),
    sha256,
    id,
    facts,
  };
  const numbers = [piece.start ?? 0, piece.bytes, facts.size, facts.modifiedAt];
  return parts.length === 8 && numbers.every(Number.isFinite) ? piece : undefined;
}

/** A file of one process: one being filled, or a lease. Its size is promised from the start. */
export function ownName(id: string, bytes: number, suffix: string): string {
  return [id, bytes, suffix].join(SEPARATOR);
}

export function parseOwnName(name: string): { readonly id: string; readonly bytes: number } | undefined {
  const [id = "", bytes] = name.split(SEPARATOR);
  return Number.isFinite(Number(bytes)) ? { id, bytes: Number(bytes) } : undefined;
}
