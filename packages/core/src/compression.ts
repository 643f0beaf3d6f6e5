/** Page compression. Everything runs in this process's JavaScript or WebAssembly; nothing is native. */

import { SchemaError } from "./errors.js";

/** How Parquet pages may be compressed. Names as in Parquet's `CompressionCodec`. */
export type Compression = "uncompressed" | "zstd";

export interface Codec {
  /** Number in `parquet.thrift`. */
  readonly id: number;
  /** Compresses into memory of its own; `bytes` may be reused afterwards. */
  compress(bytes: Uint8Array): Uint8Array;
}

export const UNCOMPRESSED: Codec = { id: 0, compress: (bytes) => bytes.slice() };

const ZSTD_ID = 6;
/** Four to seven times as fast as level 3, for files about as large. */
export const DEFAULT_ZSTD_LEVEL = 1;

interface Zstd {
  compress(bytes: Uint8Array, level?: number): Uint8Array;
  readonly isLoaded: Promise<boolean>;
}

let zstd: Zstd | undefined;
let loading: Promise<void> | undefined;

/** Loads the zstd module, once. Await it before the first {@link compressionCodec} of zstd. */
export function parquetReady(): Promise<void> {
  loading ??= import("@foxglove/wasm-zstd").then(async (module) => {
    await module.isLoaded;
    zstd = module;
  });
  return loading;
}

/**
 * The codec of a name.
 * @param level zstd only, 1 to 22
 * @throws SchemaError `unsupported_compression`; `compression_not_loaded` if zstd is used before {@link parquetReady}
 */
export function compressionCodec(name: string, level: number = DEFAULT_ZSTD_LEVEL): Codec {
  switch (name) {
    case "uncompressed":
      return UNCOMPRESSED;
    case "zstd": {
      if (zstd === undefined) {
        throw new SchemaError("compression_not_loaded", "zstd is not loaded yet: await parquetReady() first");
      }
      const { compress } = zstd;
      return { id: ZSTD_ID, compress: (bytes) => compress(bytes, level) };
    }
    case "lz4":
      // Parquet's codec 5 has been written in three framings that readers cannot tell apart.
      throw unsupported("lz4 is ambiguous in Parquet and refused");
    default:
      throw unsupported(`the compression ${JSON.stringify(name)} is not supported`);
  }
}

function unsupported(reason: string): SchemaError {
  return new SchemaError("unsupported_compression", `${reason}; choose uncompressed or zstd`);
}
