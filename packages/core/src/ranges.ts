/** Long texts in ranges that are parsed and encoded apart, by workers where a host has any. */

export { type Cutter, createCutter, frontBytes, type RangeLimits } from "./ranges/cutter.js";
export { type EncodedText, type EncodeProgress, type EncodeTextOptions, encodeText } from "./ranges/encode-text.js";
export { TextFeed, type TextFeedOptions } from "./ranges/feed.js";
export { RangePool, type RangePoolOptions, type RangeWorker, type WorkerEvents } from "./ranges/pool.js";
export { type RangePort, serveRanges } from "./ranges/serve.js";
export { type WebWorkerOptions, webWorkers } from "./ranges/web-workers.js";
