/** The engine: the hot loops of the package as one WebAssembly module. TypeScript's side of it is `engine.ts`. */

export { addBytes, configure, isFull, startBatch } from "./batch";
export { configureCsv, isCut, readRecords, recordLines } from "./csv";
export * from "./encode/index";
export { setPowers } from "./float";
export { linesRead, readRows } from "./json";
export { addSpelling, missed, missedKeyEnd, missedKeyStart } from "./keys";
export { arenaTop, beginArena, heapBase, reach, resetArena } from "./memory";
export { clear, complete, markNull, reserve, wholeValidity } from "./node";
export { wholeUtf8 } from "./utf8";
