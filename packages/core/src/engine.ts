/** The WebAssembly engine (`assembly/`): its module, its instances, and where things lie in their memory. */

import { ENGINE_MODULE } from "./engine-module.js";

/** The memory of a WebAssembly instance. Published types name nothing that only browsers' libraries declare. */
export interface EngineMemory {
  readonly buffer: ArrayBuffer;
  /** By so many pages. */
  grow(pages: number): number;
}

/** What `assembly/index.ts` exports. Addresses and sizes are in bytes. */
interface EngineExports {
  readonly memory: EngineMemory;
  heapBase(): number;
  reach(end: number): void;
  setPowers(address: number): void;
  beginArena(address: number): void;
  resetArena(): void;
  arenaTop(): number;
  configure(root: number, strict: boolean, batchRows: number, batchBytes: number): void;
  startBatch(): void;
  addBytes(size: number): number;
  readRows(at: number, separator: number): number;
  linesRead(): number;
  isFull(): number;
  configureCsv(
    delimiter: number,
    quote: number,
    escaping: number,
    flags: number,
    cells: number,
    width: number,
    nulls: number,
    nullCount: number,
  ): void;
  readRecords(at: number, end: number): number;
  recordLines(): number;
  isCut(): number;
  missed(): number;
  missedKeyStart(): number;
  missedKeyEnd(): number;
  addSpelling(node: number, spelling: number): void;
  reserve(node: number, start: number, count: number, bytes: number): void;
  markNull(node: number, index: number): void;
  complete(node: number): void;
  wholeValidity(node: number): void;
  clear(node: number): void;
  wholeUtf8(start: number, end: number): number;
}

/** Exponents of ten that the engine rounds by itself, both ways; as in `assembly/float.ts`. */
const MAX_EXPONENT = 100;
const POWERS_BYTES = (2 * MAX_EXPONENT + 1) * 16;

/** Instances kept for the next parser, and how much memory one may have to be kept. */
const MAX_IDLE = 2;
const MAX_IDLE_BYTES = 64 * 1024 * 1024;

/** Undefined before the first use, null where the host has no WebAssembly with vectors. */
let compiled: WebAssembly.Module | null | undefined;
let compiling: Promise<void> | undefined;
let powers: BigUint64Array | undefined;
const idle: Engine[] = [];

function moduleBytes(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(ENGINE_MODULE), (c) => c.charCodeAt(0));
}

/**
 * Compiles the engine without blocking, once. Nothing needs to wait for it: parsers compile it by themselves, or do
 * without it on hosts that cannot (see `docs/decisions/0005-engine.md`). Some browsers refuse to compile on the main
 * thread unless asked this way.
 */
export function engineReady(): Promise<void> {
  compiling ??= compile();
  return compiling;
}

async function compile(): Promise<void> {
  if (compiled) return;
  if (typeof WebAssembly !== "object") {
    compiled = null;
    return;
  }
  try {
    compiled = await WebAssembly.compile(moduleBytes());
  } catch (error) {
    if (!(error instanceof WebAssembly.CompileError)) throw error;
    compiled = null;
  }
}

/** The compiled `WebAssembly.Module`; undefined where there is none (yet). */
export function engineModule(): object | undefined {
  if (compiled === undefined) {
    if (typeof WebAssembly !== "object") compiled = null;
    else {
      try {
        compiled = new WebAssembly.Module(moduleBytes());
      } catch (error) {
        // A CompileError: no vector instructions here. Anything else: not on this thread, or not now.
        if (error instanceof WebAssembly.CompileError) compiled = null;
      }
    }
  }
  return compiled ?? undefined;
}

/** An engine for one parser; undefined on hosts where it cannot run, and where no memory for it is left. */
export function acquireEngine(): Engine | undefined {
  const kept = idle.pop();
  if (kept) return kept;
  const module = engineModule();
  if (!module) return undefined;
  try {
    return new Engine(new WebAssembly.Instance(module, { env: {} }).exports as unknown as EngineExports);
  } catch (error) {
    if (error instanceof RangeError || error instanceof WebAssembly.RuntimeError) return undefined;
    throw error;
  }
}

/** Gives an engine back, with which nothing may be done any more. */
export function releaseEngine(engine: Engine): void {
  if (idle.length < MAX_IDLE && engine.exports.memory.buffer.byteLength <= MAX_IDLE_BYTES) idle.push(engine);
}

/** Lets go of the engines that wait for their next parser, and of their memory. */
export function releaseEngines(): void {
  idle.length = 0;
}

/** One instance: its functions, and its memory below the arena. */
export class Engine {
  readonly exports: EngineExports;
  /** First address behind the tables that all instances have. */
  readonly base: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #words: Uint32Array = new Uint32Array(0);

  constructor(exports: EngineExports) {
    this.exports = exports;
    const table = (exports.heapBase() + 15) & ~15;
    this.base = table + POWERS_BYTES;
    exports.reach(this.base);
    powers ??= powersOfFive();
    new BigUint64Array(exports.memory.buffer, table, powers.length).set(powers);
    exports.setPowers(table);
  }

  /** The memory. Any call that may make it grow leaves this view without bytes: ask again. */
  get bytes(): Uint8Array {
    this.#refresh();
    return this.#bytes;
  }

  /** The memory as 32-bit words, see {@link bytes}. */
  get words(): Uint32Array {
    this.#refresh();
    return this.#words;
  }

  #refresh(): void {
    const { buffer } = this.exports.memory;
    if (this.#bytes.buffer === buffer) return;
    this.#bytes = new Uint8Array(buffer);
    this.#words = new Uint32Array(buffer);
  }
}

/**
 * For each power of ten the 128 leading bits of its power of five, upper word first; those below 1 rounded up, the
 * others down (D. Lemire: Number parsing at a gigabyte per second, 2021, section 5).
 */
function powersOfFive(): BigUint64Array {
  const words = new BigUint64Array(POWERS_BYTES / 8);
  const bitsOf = (value: bigint): bigint => BigInt(value.toString(2).length);
  for (let q = -MAX_EXPONENT; q <= MAX_EXPONENT; q++) {
    const power = 5n ** BigInt(Math.abs(q));
    const size = bitsOf(power);
    let leading: bigint;
    if (q >= 0) leading = size <= 128n ? power << (128n - size) : power >> (size - 128n);
    else {
      // With all the bits that an exact reciprocal needs, of which the first 128 are kept.
      const z = power === 1n << (size - 1n) ? size - 1n : size;
      const reciprocal = (1n << (q >= -27 ? z + 127n : 2n * z + 128n)) / power + 1n;
      const excess = bitsOf(reciprocal) - 128n;
      leading = excess > 0n ? reciprocal >> excess : reciprocal;
    }
    words[2 * (q + MAX_EXPONENT)] = leading >> 64n;
    words[2 * (q + MAX_EXPONENT) + 1] = BigInt.asUintN(64, leading);
  }
  return words;
}
