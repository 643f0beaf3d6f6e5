/** The loops of the Parquet encoder; `parquet-memory.ts` names them for TypeScript. */

export {
  entryBounds,
  evenOffsets,
  moveRanges,
  packFixed,
  pickOffsets,
  plainEntries,
  plainRanges,
  rangeBounds,
} from "./bytes";
export * from "./delta";
export * from "./dictionary";
export { hybrid8, hybrid32, writeRun } from "./hybrid";
export * from "./levels";
export { lz4, lzRoom, lzScratch, snappy } from "./lz";
export * from "./numbers";
export { zstd, zstdRoom, zstdScratch } from "./zstd";
export { resultAddress } from "./result";
