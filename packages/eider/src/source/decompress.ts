/** gzip and zstd, recognised by content: the first bytes of the input decide, never its name. */

import { type Duplex, Readable } from "node:stream";
import * as zlib from "node:zlib";
import { InvalidInputError } from "@eider/core";
import { Decompress } from "fzstd";

const GZIP = [0x1f, 0x8b, 0x08];
const ZSTD = [0x28, 0xb5, 0x2f, 0xfd];

/**
 * The plain bytes of a stream that may be compressed.
 * @throws InvalidInputError `truncated_gzip`, `bad_gzip`, `truncated_zstd`, `bad_zstd`
 */
export async function* decompressed(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const { head, rest } = await peek(source, ZSTD.length);
  if (startsWith(head, GZIP)) yield* gunzip(rest);
  else if (startsWith(head, ZSTD)) yield* unzstd(rest);
  else yield* rest;
}

/** The first `length` bytes of a stream, fewer if it has fewer; the stream is closed. */
export async function readHead(source: AsyncIterable<Uint8Array>, length: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of source) {
    pieces.push(new Uint8Array(piece));
    size += piece.byteLength;
    if (size >= length) break;
  }
  return Buffer.concat(pieces).subarray(0, length);
}

/** The first `length` bytes (fewer if the source has fewer), and the whole source again from its start. */
export async function peek(
  source: AsyncIterable<Uint8Array>,
  length: number,
): Promise<{ head: Uint8Array; rest: AsyncIterable<Uint8Array> }> {
  const iterator = source[Symbol.asyncIterator]();
  const pieces: Uint8Array[] = [];
  let size = 0;
  while (size < length) {
    const next = await iterator.next();
    if (next.done) break;
    pieces.push(new Uint8Array(next.value));
    size += next.value.byteLength;
  }
  const head = Buffer.concat(pieces).subarray(0, length);
  // No generator: one that was never begun would not close the source.
  const rest: AsyncIterator<Uint8Array> = {
    next: async () => (pieces.length > 0 ? { done: false, value: pieces.shift()! } : iterator.next()),
    return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
  };
  return { head, rest: { [Symbol.asyncIterator]: () => rest } };
}

function startsWith(bytes: Uint8Array, magic: readonly number[]): boolean {
  return magic.every((byte, i) => bytes[i] === byte);
}

async function* gunzip(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  yield* through(source, zlib.createGunzip(), "gzip", (code) => code === "Z_BUF_ERROR");
}

/** Runs the source through one of Node's decoders and names what is wrong with the input. */
async function* through(
  source: AsyncIterable<Uint8Array>,
  decoder: Duplex,
  format: "gzip" | "zstd",
  isTruncated: (code: string, message: string) => boolean,
): AsyncIterable<Uint8Array> {
  // A stream asks for pieces ahead, so each needs memory of its own.
  const input = Readable.from(owned(source), { objectMode: false });
  // An error of the source itself must surface as that error, not as a cut-off archive.
  input.once("error", (error) => decoder.destroy(error));
  try {
    for await (const piece of input.pipe(decoder)) yield piece as Uint8Array;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined && isTruncated(code, message)) throw truncated(format, error);
    if (code?.startsWith(format === "gzip" ? "Z_" : "ZSTD_")) throw damaged(format, error);
    throw error;
  } finally {
    input.destroy();
    decoder.destroy();
  }
}

async function* owned(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  for await (const piece of source) yield new Uint8Array(piece);
}

function truncated(format: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(`truncated_${format}`, `the ${format} input is cut off: fetch or write the file again`, {
    cause,
  });
}

function damaged(format: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(`bad_${format}`, `the ${format} input is damaged: fetch or write the file again`, {
    cause,
  });
}

/** Node 22.15 and later decode zstd themselves, and check its checksums; Node 20 takes fzstd, which does not. */
async function* unzstd(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const native = (zlib as { createZstdDecompress?: () => Duplex }).createZstdDecompress;
  if (native) {
    yield* through(
      source,
      native(),
      "zstd",
      (code, message) => code === "Z_BUF_ERROR" || /unexpected end/i.test(message),
    );
    return;
  }
  const ready: Uint8Array[] = [];
  const decoder = new Decompress((piece) => {
    if (piece.byteLength > 0) ready.push(new Uint8Array(piece));
  });
  const push = (piece: Uint8Array, final: boolean): void => {
    try {
      decoder.push(piece, final);
    } catch (error) {
      throw error instanceof Error && error.message === "unexpected EOF"
        ? truncated("zstd", error)
        : damaged("zstd", error);
    }
  };
  for await (const piece of source) {
    push(new Uint8Array(piece), false);
    yield* ready.splice(0);
  }
  push(new Uint8Array(0), true);
  yield* ready.splice(0);
}
