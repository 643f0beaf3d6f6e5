/** What a caller may say about a Parquet file, and what that means for each of its leaf columns. */

import { type Codec, type Compression, compressionCodec } from "./compression.js";
import { SchemaError } from "./errors.js";
import { Encoding, PhysicalType } from "./parquet-format.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { formatType } from "./schema.js";

/** Encodings by their names in `parquet.thrift`. */
export type ParquetEncoding =
  | "PLAIN"
  | "RLE_DICTIONARY"
  | "DELTA_BINARY_PACKED"
  | "DELTA_LENGTH_BYTE_ARRAY"
  | "DELTA_BYTE_ARRAY"
  | "BYTE_STREAM_SPLIT";

export interface ParquetColumnOptions {
  /** Default: the file's. */
  readonly compression?: Compression;
  /** Default: the file's if the compression is, else that of the compression. */
  readonly compressionLevel?: number;
  /** Default: the file's. */
  readonly dictionary?: "auto" | false;
  /** Default: what is smallest. `RLE_DICTIONARY` gives way where there are over 65,536 distinct values, or 1 MiB of them. */
  readonly encoding?: ParquetEncoding;
}

export interface ParquetOptions {
  /** Default `zstd`. A column chunk that would not shrink is stored uncompressed all the same. */
  readonly compression?: Compression;
  /** zstd: 1 to 22, default 1. gzip: 0 to 9, default 6. brotli: 0 to 11, default 4. */
  readonly compressionLevel?: number;
  /** Rows in a page. Default 20,000; fewer where values are large. */
  readonly pageRows?: number;
  /** `auto` (default): where a dictionary makes a column smaller. */
  readonly dictionary?: "auto" | false;
  /**
   * Which minima, maxima and null counts are written: of column chunks and pages (`page`, default; those of pages are
   * in the page index), of column chunks, or none. They are returned in any case.
   */
  readonly statistics?: "page" | "chunk" | "none";
  /** Longer text and binary bounds are cut, the maximum rounded up. Default 64. */
  readonly statisticsTruncateBytes?: number;
  /** Write the page index: offsets of pages, and their statistics. Default true. */
  readonly pageIndex?: boolean;
  /** Leaf columns that differ, by their paths in Parquet: `id`, `point.x`, `tags.list.element`, `map.key_value.value`. */
  readonly columns?: Readonly<Record<string, ParquetColumnOptions>>;
  /** Key-value metadata of the file. */
  readonly keyValues?: Readonly<Record<string, string>>;
  /**
   * A digest of a column chunk's bytes, in text without spaces. If it is given, the digests of all chunks are in the
   * file's key-value `eider.chunks`, so that a chunk that was read alone can be checked.
   */
  readonly chunkDigest?: (bytes: readonly Uint8Array[]) => string;
  /** Default `eider version 0.1.0`. */
  readonly createdBy?: string;
}

/** How the pages of one leaf column are written. */
export interface PageOptions {
  readonly codec: Codec;
  readonly pageRows: number;
  readonly dictionary: boolean;
  /** Undefined for what is smallest. */
  readonly encoding: Encoding | undefined;
  readonly truncateBytes: number;
}

/**
 * The options of each leaf.
 * @throws SchemaError `bad_option`, `no_such_column`, `unsupported_encoding`, and those of {@link compressionCodec}
 */
export function pageOptions(leaves: readonly ParquetLeaf[], options: ParquetOptions): PageOptions[] {
  const { compression = "zstd", compressionLevel, columns = {} } = options;
  if (!["page", "chunk", "none", undefined].includes(options.statistics)) {
    throw new SchemaError("bad_option", `statistics must be page, chunk or none, not ${options.statistics}`);
  }
  const pageRows = atLeastOne("pageRows", options.pageRows ?? 20_000);
  const truncateBytes = atLeastOne("statisticsTruncateBytes", options.statisticsTruncateBytes ?? 64);
  const codec = compressionCodec(compression, compressionLevel);
  const paths = leaves.map(({ path }) => path.join("."));
  for (const name of Object.keys(columns)) {
    if (paths.includes(name)) continue;
    throw new SchemaError(
      "no_such_column",
      `there is no leaf column ${JSON.stringify(name)}, but ${paths.join(", ")}`,
      {
        subject: name,
      },
    );
  }
  return leaves.map((leaf, i) => {
    const own = Object.hasOwn(columns, paths[i]!) ? columns[paths[i]!]! : {};
    const differs = own.compression !== undefined || own.compressionLevel !== undefined;
    const level = own.compressionLevel ?? (own.compression === undefined ? compressionLevel : undefined);
    return {
      codec: differs ? compressionCodec(own.compression ?? compression, level) : codec,
      pageRows,
      dictionary: (own.dictionary ?? options.dictionary) !== false,
      encoding: own.encoding === undefined ? undefined : encodingOf(leaf, own.encoding),
      truncateBytes,
    };
  });
}

/** A whole number from 1, or a SchemaError `bad_option`. */
export function atLeastOne(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new SchemaError("bad_option", `${name} must be a whole number from 1, not ${value}`);
}

const { int32, int64, float, double, byteArray, fixedLenByteArray } = PhysicalType;

/** Encodings.md says which types have which. */
const ENCODINGS: Readonly<
  Record<ParquetEncoding, { readonly encoding: Encoding; readonly types?: readonly number[] }>
> = {
  PLAIN: { encoding: Encoding.plain },
  RLE_DICTIONARY: {
    encoding: Encoding.rleDictionary,
    types: [int32, int64, float, double, byteArray, fixedLenByteArray],
  },
  DELTA_BINARY_PACKED: { encoding: Encoding.deltaBinaryPacked, types: [int32, int64] },
  DELTA_LENGTH_BYTE_ARRAY: { encoding: Encoding.deltaLengthByteArray, types: [byteArray] },
  DELTA_BYTE_ARRAY: { encoding: Encoding.deltaByteArray, types: [byteArray] },
  // Of integers, too, since 2.11, but few readers know that.
  BYTE_STREAM_SPLIT: { encoding: Encoding.byteStreamSplit, types: [float, double] },
};

function encodingOf(leaf: ParquetLeaf, name: ParquetEncoding): Encoding {
  const known = Object.hasOwn(ENCODINGS, name) ? ENCODINGS[name] : undefined;
  if (known !== undefined && (known.types?.includes(leaf.physical) ?? true)) return known.encoding;
  const possible = Object.entries(ENCODINGS).filter(([, { types }]) => types?.includes(leaf.physical) ?? true);
  const path = leaf.path.join(".");
  throw new SchemaError(
    "unsupported_encoding",
    `the column ${JSON.stringify(path)} of ${formatType(leaf.field.type)} cannot be ${JSON.stringify(name)}; choose ${possible.map(([other]) => other).join(", ")}`,
    { subject: path },
  );
}
