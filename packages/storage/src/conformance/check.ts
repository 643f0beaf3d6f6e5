import type { EiderError } from "@eider/core";
import type { GetOptions, ListOptions, ObjectStore, StoredObject } from "../store.js";

/** Sizes of a run. */
export interface CheckScale {
  /** How often a race is run. */
  readonly rounds: number;
  /** Objects in listings that must cross pages. */
  readonly many: number;
}

/** One rule of the contract of `ObjectStore`. */
export interface ConformanceCheck {
  /** Says the rule; unique. */
  readonly name: string;
  /** Runs only if the store says that it can do this. */
  readonly needs?: "conditionalPut" | "conditionalReplace";
  /** Throws if the empty `store` breaks the rule. */
  readonly run: (store: ObjectStore, scale: CheckScale) => Promise<void>;
}

/** Throws with `message` unless it holds. */
export function expect(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Error(message);
}

/** Compares by JSON, which is exact for the strings, numbers and lists of these checks. */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  expect(got === wanted, `${what}: expected ${shorten(wanted)}, got ${shorten(got)}`);
}

function shorten(text: string | undefined): string {
  return text === undefined || text.length <= 500 ? String(text) : `${text.slice(0, 500)}…`;
}

/** Compares bytes and names the first that differs. */
export function expectBytes(actual: Uint8Array, expected: Uint8Array, what: string): void {
  const length = Math.min(actual.length, expected.length);
  for (let i = 0; i < length; i++) {
    if (actual[i] !== expected[i]) throw new Error(`${what}: byte ${i} is ${actual[i]}, expected ${expected[i]}`);
  }
  expect(actual.length === expected.length, `${what}: ${actual.length} bytes, expected ${expected.length}`);
}

/** The promise must reject with this kind of error, and with this code if one is given. */
export async function expectError(
  promise: Promise<unknown>,
  kind: abstract new (...args: never[]) => EiderError,
  what: string,
  code?: string,
): Promise<void> {
  const error = await rejection(promise, what);
  const got = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  expect(error instanceof kind, `${what}: expected ${kind.name}, got ${got}`);
  if (code !== undefined) expectEqual((error as EiderError).code, code, `${what}: the error's code`);
}

/** What the promise rejects with; it must reject. */
export async function rejection(promise: Promise<unknown>, what: string): Promise<unknown> {
  const settled = await promise.then(
    () => ({ ok: true as const }),
    (error: unknown) => ({ ok: false as const, error }),
  );
  expect(!settled.ok, `${what}: expected an error, but it succeeded`);
  return settled.error;
}

/** All bytes of a body. */
export async function collect(object: StoredObject): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of object.body) chunks.push(chunk);
  return concat(chunks);
}

/** Chunks as one array. */
export function concat(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

/** The bytes of an object, or of a range of it. */
export async function read(store: ObjectStore, key: string, options?: GetOptions): Promise<Uint8Array> {
  return collect(await store.get(key, options));
}

/** The keys of a listing as they come. */
export async function keysOf(store: ObjectStore, prefix = "", options?: ListOptions): Promise<string[]> {
  const keys: string[] = [];
  for await (const info of store.list(prefix, options)) keys.push(info.key);
  return keys;
}

/** Puts a small object under each key; each holds its own key. */
export async function fill(store: ObjectStore, keys: readonly string[]): Promise<void> {
  for (let start = 0; start < keys.length; start += 32) {
    await Promise.all(keys.slice(start, start + 32).map((key) => store.put(key, text(key))));
  }
}

const encoder = new TextEncoder();

/** UTF-8 bytes. */
export function text(value: string): Uint8Array {
  return encoder.encode(value);
}

/** `length` bytes in which each position differs from its neighbours, also across a MiB. */
export function pattern(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >>> 8) * 7 + (i >>> 16)) & 0xff;
  return bytes;
}

/** A body in chunks of this size, giving others a turn after each chunk. */
export async function* chunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) {
    yield bytes.slice(start, start + size);
    await turn();
  }
}

/** Lets everything that is ready run first. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** Which of the puts won; the others must have failed with this kind of error, and this code if one is given. */
export async function winners(
  puts: readonly Promise<unknown>[],
  loss: abstract new (...args: never[]) => EiderError,
  code?: string,
): Promise<number[]> {
  const settled = await Promise.allSettled(puts);
  return settled.flatMap((result, index) => {
    if (result.status === "fulfilled") return [index];
    const { reason } = result;
    expect(reason instanceof loss, `a lost race must be ${loss.name}, not ${String(reason)}`);
    if (code !== undefined) expectEqual((reason as EiderError).code, code, "the code of a lost race");
    return [];
  });
}
