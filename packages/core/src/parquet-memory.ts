/**
 * The memory and the loops of the Parquet encoder: WebAssembly, from `assembly/encode`. Column buffers are copied in, one
 * column at a time, and pages come out. Addresses are numbers; 0 stands for an array that is not needed.
 */

import { type Engine, type EngineMemory, engineModule } from "./engine.js";
import { LimitError } from "./errors.js";

/** What `assembly/encode` exports; each is documented there. Numbers are addresses, counts and flags. */
interface EncodeLoops {
  readonly memory: EngineMemory;
  heapBase(): number;
  resultAddress(): number;

  enterFlat(count: number, level: number, validity: number, definition: number, positions: number): number;
  enterNullable(
    count: number,
    level: number,
    reached: number,
    index: number,
    validity: number,
    definition: number,
    next: number,
  ): void;
  hasNull(count: number, index: number, validity: number): number;
  enterRepeated(
    count: number,
    level: number,
    repetitionLevel: number,
    reached: number,
    repeated: number,
    index: number,
    offsets: number,
    definition: number,
    repetition: number,
    next: number,
  ): number;
  keepPositions(count: number, index: number, positions: number): number;
  cutPages(
    count: number,
    values: number,
    definition: number,
    repetition: number,
    maxDefinition: number,
    offsets: number,
    width: number,
    pageRows: number,
    pageBytes: number,
    cuts: number,
  ): number;

  writeRun(out: number, value: number, count: number, width: number): number;
  hybrid8(out: number, values: number, start: number, end: number, width: number): number;
  hybrid32(out: number, values: number, start: number, end: number, width: number): number;
  delta32(out: number, values: number, start: number, end: number): number;
  delta64(out: number, values: number, start: number, end: number): number;
  deltaLengths(out: number, offsets: number, start: number, end: number): number;
  deltaBytes(out: number, data: number, offsets: number, start: number, end: number, scratch: number): number;
  estimateDelta32(values: number, count: number): number;
  estimateDelta64(values: number, count: number): number;
  splitStreams(out: number, values: number, start: number, end: number, width: number): number;

  dictionary32(
    values: number,
    count: number,
    judge: number,
    limit: number,
    codes: number,
    entries: number,
    slots: number,
    bits: number,
  ): number;
  dictionary64(
    values: number,
    count: number,
    judge: number,
    limit: number,
    codes: number,
    entries: number,
    slots: number,
    bits: number,
  ): number;
  dictionaryBytes(
    data: number,
    offsets: number,
    count: number,
    overhead: number,
    judge: number,
    limit: number,
    limitBytes: number,
    codes: number,
    entries: number,
    slots: number,
    bits: number,
  ): number;

  pack32(values: number, positions: number, count: number, stride: number, to: number): void;
  pack64(values: number, positions: number, count: number, stride: number, to: number): void;
  widen(values: number, positions: number, count: number, width: number, signed: number, to: number): void;
  unpackBits(bits: number, positions: number, count: number, to: number): void;
  packBits(out: number, values: number, start: number, end: number): number;
  sumBytes(values: number, start: number, end: number): number;
  bounds32(values: number, start: number, end: number, flip: number): void;
  bounds64(values: number, start: number, end: number, flip: bigint): void;
  boundsFloat(values: number, start: number, end: number): number;
  boundsDouble(values: number, start: number, end: number): number;
  entries32(out: number, values: number, entries: number, size: number): number;
  entries64(out: number, values: number, entries: number, size: number): number;

  pickOffsets(offsets: number, positions: number, count: number, picked: number): number;
  moveRanges(data: number, offsets: number, positions: number, count: number, to: number, moved: number): void;
  evenOffsets(count: number, width: number, offsets: number): void;
  packFixed(
    values: number,
    positions: number,
    count: number,
    stride: number,
    width: number,
    reverse: number,
    to: number,
  ): void;
  plainRanges(out: number, data: number, offsets: number, start: number, end: number): number;
  plainEntries(out: number, data: number, offsets: number, entries: number, size: number, lengths: number): number;
  rangeBounds(data: number, offsets: number, signed: number, start: number, end: number): void;
  entryBounds(
    data: number,
    offsets: number,
    signed: number,
    codes: number,
    entries: number,
    size: number,
    seen: number,
    start: number,
    end: number,
  ): void;

  zstd(out: number, from: number, size: number, scratch: number): number;
  zstdRoom(size: number): number;
  zstdScratch(): number;
  snappy(out: number, from: number, size: number, scratch: number): number;
  lz4(out: number, from: number, size: number, scratch: number): number;
  lzRoom(size: number): number;
  lzScratch(): number;
}

/** Loops read, and vector stores write, a little beyond what they were given. */
const SLACK = 32;
/** Memory never shrinks: an instance that has grown beyond this is let go. */
const KEEP_BYTES = 64 << 20;

/** Memory taken from the bottom up, and given back down to a mark. */
export class EncodeMemory {
  readonly loops: EncodeLoops;
  readonly #memory: EngineMemory;
  readonly #result: number;
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView<ArrayBuffer>;
  #top: number;

  /** @param start what lies below it stays as it is */
  private constructor(loops: EncodeLoops, start: number) {
    this.loops = loops;
    this.#memory = loops.memory;
    this.#result = loops.resultAddress();
    this.#top = (start + 15) & ~15;
    this.#bytes = new Uint8Array(this.#memory.buffer);
    this.#view = new DataView(this.#memory.buffer);
  }

  static #own(): EncodeMemory {
    const module = engineModule();
    if (module === undefined) {
      throw new LimitError(
        "no_webassembly",
        "Parquet needs WebAssembly with vectors: await parquetReady() first, or use a newer browser",
      );
    }
    const loops = new WebAssembly.Instance(module, { env: {} }).exports as unknown as EncodeLoops;
    return new EncodeMemory(loops, loops.heapBase());
  }

  static #kept: EncodeMemory | undefined;

  /**
   * Runs `use` with memory that is all its own until it returns: it may not await.
   * @param engine whose columns are read: the memory behind them is used, and they need not be copied
   * @throws LimitError `row_group_too_large`
   */
  static use<T>(use: (memory: EncodeMemory) => T, engine?: Engine): T {
    if (engine) return use(new EncodeMemory(engine.exports as unknown as EncodeLoops, engine.exports.arenaTop()));
    // Taken away while in use: a caller within the caller gets another.
    const memory = EncodeMemory.#kept ?? EncodeMemory.#own();
    EncodeMemory.#kept = undefined;
    const mark = memory.mark();
    const result = use(memory);
    memory.release(mark);
    if (memory.#bytes.length <= KEEP_BYTES) EncodeMemory.#kept = memory;
    return result;
  }

  mark(): number {
    return this.#top;
  }

  /** Gives back all that was taken since the mark. */
  release(mark: number): void {
    this.#top = mark;
  }

  /** Takes `size` bytes, not zeroed, aligned to 16. */
  take(size: number): number {
    const at = this.#top;
    const end = (at + size + SLACK + 15) & ~15;
    // Beyond 2 GiB the sum turns negative.
    if (end < at) throw tooLarge();
    if (end > this.#bytes.length) this.#grow(end);
    this.#top = end;
    return at;
  }

  /** Where the bytes of a buffer are in this memory, to be read only: copied there unless they lie there already. */
  copyIn(source: ArrayBufferView, bytes: number = source.byteLength): number {
    if (source.buffer === this.#memory.buffer && source.byteOffset > 0) return source.byteOffset;
    const at = this.take(bytes);
    this.#bytes.set(new Uint8Array(source.buffer, source.byteOffset, bytes), at);
    return at;
  }

  /** Copies within the memory; returns the end of the copy. */
  copy(to: number, from: number, bytes: number): number {
    this.#bytes.copyWithin(to, from, from + bytes);
    return to + bytes;
  }

  fill(at: number, value: number, bytes: number): void {
    this.#bytes.fill(value, at, at + bytes);
  }

  setByte(at: number, value: number): void {
    this.#bytes[at] = value;
  }

  setInt32(at: number, value: number): void {
    this.#view.setInt32(at, value, true);
  }

  int32(at: number): number {
    return this.#view.getInt32(at, true);
  }

  /** Bytes as they are, valid until memory is taken or given back. */
  view(at: number, bytes: number): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(at, at + bytes);
  }

  /** A copy. */
  bytes(at: number, bytes: number): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(at, at + bytes);
  }

  /** What a loop left as its result: the numbers of one kind, one behind the other. */
  resultInt32(index: number): number {
    return this.#view.getInt32(this.#result + 4 * index, true);
  }

  resultInt64(index: number): bigint {
    return this.#view.getBigInt64(this.#result + 8 * index, true);
  }

  resultDouble(index: number): number {
    return this.#view.getFloat64(this.#result + 8 * index, true);
  }

  #grow(end: number): void {
    // By a quarter more, so that columns that grow slowly do not ask each time.
    const pages = Math.ceil((end - this.#bytes.length) / PAGE);
    const quarter = this.#bytes.length >> 18;
    try {
      this.#memory.grow(pages + quarter);
    } catch {
      throw tooLarge();
    }
    this.#bytes = new Uint8Array(this.#memory.buffer);
    this.#view = new DataView(this.#memory.buffer);
  }
}

/** WebAssembly counts memory in pages. */
const PAGE = 65_536;

function tooLarge(): LimitError {
  return new LimitError("row_group_too_large", "the row group does not fit into memory: write fewer rows at a time");
}
