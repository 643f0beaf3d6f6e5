/** How rows are laid out in files: what users may say about it, and what an append does by itself. */

import { InvalidInputError, type ParquetOptions } from "@eider/core";

const MIB = 1024 * 1024;

/** When a file ends and the next one of its partition begins. The first limit that is reached counts; none by default. */
export interface Rotation {
  /** A file has exactly so many rows, its last one perhaps fewer. */
  readonly rows?: number;
  /** Stored bytes. A file ends before the row group that would exceed them; a row group larger than this is a file by itself. */
  readonly bytes?: number;
  /** Milliseconds after the first row of a file came. */
  readonly ageMs?: number;
}

/** The Parquet files of a writer. */
export interface FileOptions extends Omit<ParquetOptions, "keyValues" | "createdBy" | "chunkDigest"> {
  /** Rows in a row group. Default 100,000. */
  readonly rowGroupRows?: number;
  /** Bytes of a row group's columns in memory, about. Default 16 MiB. */
  readonly rowGroupBytes?: number;
  /**
   * Files that are open at the same time, those being stored included. Where one more is needed, the one least recently
   * written to is ended first. Default 64.
   */
  readonly maxOpenPartitions?: number;
  /**
   * Memory for rows that wait for their row group to fill, over all partitions together. Where it does not suffice, the
   * rows of the largest partitions are written as smaller row groups: more of it makes fewer and larger files where rows
   * of many partitions come mixed. Default 128 MiB.
   */
  readonly bufferBytes?: number;
}

/** How rows are laid out in files. */
export interface FileLayout {
  readonly parquet: ParquetOptions;
  readonly rowGroupRows: number;
  /** Of columns in memory. */
  readonly rowGroupBytes: number;
  /** A file ends with this row. */
  readonly maxFileRows: number;
  /** Stored bytes. A file ends before the row group that would exceed them, unless that is its first. */
  readonly maxFileBytes: number;
  /** Milliseconds from the first row of a file to its end. */
  readonly maxAgeMs: number;
  /** Files open at the same time, those included that are being ended. */
  readonly maxOpen: number;
  /** Memory for rows that wait, over all partitions together. */
  readonly bufferBytes: number;
  /** Rows wait until memory is short or all are in, and make a whole file each time: sorted files have to. */
  readonly wholeFiles: boolean;
}

/** Of `table.append`: files of 128 MiB, few partitions' files at a time, and 64 MiB of rows that wait for theirs. */
export const APPEND_LAYOUT: FileLayout = {
  parquet: {},
  rowGroupRows: 100_000,
  rowGroupBytes: Number.POSITIVE_INFINITY,
  maxFileRows: Number.POSITIVE_INFINITY,
  maxFileBytes: 128 * MIB,
  maxAgeMs: Number.POSITIVE_INFINITY,
  maxOpen: 4,
  bufferBytes: 64 * MIB,
  wholeFiles: true,
};

/** @throws InvalidInputError `bad_option` */
export function fileLayout(options: FileOptions, rotate: Rotation = {}): FileLayout {
  const { rowGroupRows, rowGroupBytes, maxOpenPartitions, bufferBytes, ...parquet } = options;
  return {
    parquet,
    rowGroupRows: atLeastOne("rowGroupRows", rowGroupRows, 100_000),
    rowGroupBytes: atLeastOne("rowGroupBytes", rowGroupBytes, 16 * MIB),
    maxFileRows: atLeastOne("rotate.rows", rotate.rows, Number.POSITIVE_INFINITY),
    maxFileBytes: atLeastOne("rotate.bytes", rotate.bytes, Number.POSITIVE_INFINITY),
    maxAgeMs: atLeastOne("rotate.ageMs", rotate.ageMs, Number.POSITIVE_INFINITY),
    maxOpen: atLeastOne("maxOpenPartitions", maxOpenPartitions, 64),
    bufferBytes: atLeastOne("bufferBytes", bufferBytes, 128 * MIB),
    wholeFiles: false,
  };
}

function atLeastOne(name: string, value: number | undefined, standard: number): number {
  if (value === undefined) return standard;
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidInputError("bad_option", `the option ${name} of a writer has to be a whole number from 1`, {
    subject: name,
  });
}
