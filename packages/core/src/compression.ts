/**
 * Page compression. zstd of level 1, Snappy and LZ4 are loops of our own in the encoder's memory; the others are loaded
 * when they are asked for.
 */

import { engineReady } from "./engine.js";
import { LimitError, SchemaError } from "./errors.js";
import type { EncodeMemory } from "./parquet-memory.js";

/** How Parquet pages may be compressed. `lz4raw` is `LZ4_RAW` of `parquet.thrift`. */
export type Compression = "uncompressed" | "snappy" | "gzip" | "brotli" | "zstd" | "lz4raw";

/** Bytes in the encoder's memory, which are its caller's until that is released. */
export interface Compressed {
  readonly at: number;
  readonly length: number;
}

export interface Codec {
  /** Number in `parquet.thrift`. */
  readonly id: number;
  /** Compresses bytes of the encoder's memory into other memory that it takes. */
  compress(memory: EncodeMemory, at: number, length: number): Compressed;
}

/** What a codec that is not our own is made of. */
type CompressBytes = (bytes: Uint8Array, level: number) => Uint8Array;

export const UNCOMPRESSED: Codec = { id: 0, compress: (_memory, at, length) => ({ at, length }) };

/** Numbers in `parquet.thrift`, and the levels that there are; the first one is the default. */
const CODECS: Readonly<
  Record<Compression, { readonly id: number; readonly levels?: readonly [number, number, number] }>
> = {
  uncompressed: { id: 0 },
  snappy: { id: 1 },
  gzip: { id: 2, levels: [6, 0, 9] },
  // Level 4 of brotli is about as fast as level 6 of gzip, and smaller.
  brotli: { id: 4, levels: [4, 0, 11] },
  // Level 1 of zstd is four to seven times as fast as level 3, for files about as large.
  zstd: { id: 6, levels: [1, 1, 22] },
  lz4raw: { id: 7 },
};

const loaded = new Map<string, CompressBytes>();
const loading = new Map<string, Promise<void>>();

/**
 * Makes ready what encoding with these options needs. Await it before the first encoder: some browsers compile
 * WebAssembly in no other way, and codecs other than snappy, lz4raw and zstd of level 1 are loaded here.
 * @throws LimitError `codec_not_loaded` where a codec cannot be fetched
 */
export async function parquetReady(
  options: { readonly compression?: Compression; readonly compressionLevel?: number } = {},
): Promise<void> {
  await Promise.all([engineReady(), load(options.compression ?? "zstd", options.compressionLevel)]);
}

async function load(name: Compression, level: number | undefined): Promise<void> {
  const loader = name === "zstd" && (level ?? 1) === 1 ? undefined : LOADERS[name];
  if (loader === undefined) return;
  let promise = loading.get(name);
  if (promise === undefined) {
    promise = loader().then((compress) => {
      loaded.set(name, compress);
    });
    loading.set(name, promise);
    // A module that could not be fetched now may be later.
    promise.catch(() => loading.delete(name));
  }
  try {
    await promise;
  } catch (cause) {
    throw new LimitError(
      "codec_not_loaded",
      `${name} cannot be loaded: bundle and serve its WebAssembly as docs/browsers.md says, or use zstd of level 1, snappy or lz4raw, which need nothing`,
      { cause },
    );
  }
}

const LOADERS: Partial<Record<Compression, () => Promise<CompressBytes>>> = {
  async gzip() {
    const { gzipSync } = await import("fflate");
    // Without a time in the header the same pages give the same bytes.
    return (bytes, level) => gzipSync(bytes, { level: level as 6, mtime: 0 });
  },
  async brotli() {
    const { process } = globalThis as { process?: Partial<NodeJS.Process> };
    // The package finds its module by a URL that Node.js does not fetch; but Node.js has brotli itself.
    const zlib = process?.getBuiltinModule?.("zlib");
    if (zlib !== undefined) {
      const quality = zlib.constants.BROTLI_PARAM_QUALITY;
      return (bytes, level) => zlib.brotliCompressSync(bytes, { params: { [quality]: level } });
    }
    const { compress } = await (await import("brotli-wasm")).default;
    return (bytes, level) => compress(bytes, { quality: level });
  },
  async zstd() {
    const { default: create } = await import("@foxglove/wasm-zstd/dist/wasm-zstd.js");
    const module = await create();
    return (bytes, level) => {
      const from = module._malloc(bytes.length);
      const room = module._compressBound(bytes.length);
      const out = module._malloc(room);
      try {
        module.HEAPU8.set(bytes, from);
        const size = module._compress(out, room, from, bytes.length, level);
        if (size < 0) throw new Error(`zstd cannot compress ${bytes.length} bytes`);
        return module.HEAPU8.slice(out, out + size);
      } finally {
        module._free(from);
        module._free(out);
      }
    };
  },
};

/**
 * The codec of a name.
 * @throws SchemaError `unsupported_compression`, `bad_option`; `compression_not_loaded` before {@link parquetReady}
 */
export function compressionCodec(name: Compression, level?: number): Codec {
  if (!Object.hasOwn(CODECS, name)) {
    const reason =
      (name as string) === "lz4"
        ? // Codec 5 has been written in three framings that readers cannot tell apart.
          "lz4 is ambiguous in Parquet and refused"
        : `the compression ${JSON.stringify(name)} is not supported`;
    throw new SchemaError("unsupported_compression", `${reason}; choose one of ${Object.keys(CODECS).join(", ")}`);
  }
  const { id, levels } = CODECS[name];
  const [usual, low, high] = levels ?? [0, 0, 0];
  const chosen = level ?? usual;
  if (levels !== undefined && !(Number.isSafeInteger(chosen) && chosen >= low && chosen <= high)) {
    throw new SchemaError("bad_option", `compressionLevel of ${name} must be a whole number from ${low} to ${high}`);
  }
  switch (name) {
    case "uncompressed":
      return UNCOMPRESSED;
    case "snappy":
      return { id, compress: (memory, at, length) => compressLz(memory, memory.loops.snappy, at, length) };
    case "lz4raw":
      return { id, compress: (memory, at, length) => compressLz(memory, memory.loops.lz4, at, length) };
    case "zstd":
      if (chosen === 1) return { id, compress: compressZstd };
  }
  const compress = loaded.get(name);
  if (compress === undefined) {
    throw new SchemaError(
      "compression_not_loaded",
      `${name} is not loaded yet: await parquetReady({ compression: ${JSON.stringify(name)}, … }) first`,
    );
  }
  return {
    id,
    compress(memory, at, length) {
      const bytes = compress(memory.view(at, length), chosen);
      return { at: memory.copyIn(bytes), length: bytes.length };
    },
  };
}

type Loop = (out: number, from: number, size: number, scratch: number) => number;

function compressZstd(memory: EncodeMemory, at: number, length: number): Compressed {
  const { zstd, zstdRoom, zstdScratch } = memory.loops;
  return run(memory, zstd, at, length, zstdRoom(length), zstdScratch());
}

function compressLz(memory: EncodeMemory, loop: Loop, at: number, length: number): Compressed {
  const { lzRoom, lzScratch } = memory.loops;
  return run(memory, loop, at, length, lzRoom(length), lzScratch());
}

function run(
  memory: EncodeMemory,
  loop: Loop,
  at: number,
  length: number,
  room: number,
  scratchBytes: number,
): Compressed {
  const out = memory.take(room);
  const mark = memory.mark();
  const end = loop(out, at, length, memory.take(scratchBytes));
  memory.release(mark);
  return { at: out, length: end - out };
}
