/** What the package's own entry is made of: that one copies by way of Node.js's `Buffer`, which browsers lack. */
declare module "@foxglove/wasm-zstd/dist/wasm-zstd.js" {
  export interface ZstdModule {
    /** Another view whenever memory has grown. */
    readonly HEAPU8: Uint8Array;
    _malloc(size: number): number;
    _free(address: number): void;
    _compressBound(size: number): number;
    /** Bytes written, −1 for an error. */
    _compress(out: number, room: number, from: number, size: number, level: number): number;
  }
  export default function create(): Promise<ZstdModule>;
}
