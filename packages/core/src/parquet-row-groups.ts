/** Where the row groups of a Parquet file lie, so that a part of it can be read alone. */

import { chunkExtent, footerOf } from "./parquet-footer.js";
import { malformed } from "./parquet-thrift.js";

export interface ParquetRowGroup {
  readonly rows: number;
  /** Offsets in the file: of its first page, and behind its last. */
  readonly start: number;
  readonly end: number;
}

/**
 * The row groups of a file, whatever its columns are.
 * @param tail the file's last bytes, at least `parquetFooterBytes`
 * @throws InvalidInputError `bad_parquet`
 */
export function readParquetRowGroups(tail: Uint8Array): ParquetRowGroup[] {
  const groups = footerOf(tail).structs(4);
  if (groups === undefined) throw malformed("the footer is incomplete");
  return groups.map((group) => {
    const chunks = (group.structs(1) ?? []).map((chunk) => chunkExtent(chunk.struct(3)));
    if (chunks.length === 0) throw malformed("a row group has no columns");
    return {
      rows: group.int(3) ?? 0,
      start: Math.min(...chunks.map(({ start }) => start)),
      end: Math.max(...chunks.map(({ end }) => end)),
    };
  });
}
