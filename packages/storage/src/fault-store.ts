import { setTimeout as sleep } from "node:timers/promises";
import { StoreError } from "@eider/core";
import type {
  CallOptions,
  GetOptions,
  ListOptions,
  ObjectBody,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  StoredObject,
} from "./store.js";
import { StoreWrapper } from "./wrapper.js";

/** One call of a store, as hooks and rules see it. */
export interface StoreCall {
  readonly kind: "put" | "get" | "head" | "list" | "delete";
  /** One key, the keys of a delete, or the prefix of a list. */
  readonly keys: readonly string[];
  /** Counts all calls of this store from 1. */
  readonly number: number;
}

/**
 * What goes wrong.
 * - `fail`: throws `error`, by default a retryable `StoreError` (`injected_fault`).
 * - `hang`: never answers, until the call's signal aborts or the store closes.
 * - `delay`: goes on after that time.
 * - `cut`: the body of a `get` fails after that many bytes.
 */
export type Fault =
  | { readonly type: "fail"; readonly error?: Error }
  | { readonly type: "hang" }
  | { readonly type: "delay"; readonly milliseconds: number }
  | { readonly type: "cut"; readonly bytes: number };

/** When a fault happens. */
export interface FaultRule {
  /** Default: any call. */
  readonly on?: StoreCall["kind"];
  /** Matches one of the call's keys: as a whole, or by a pattern. Default: any. */
  readonly key?: string | RegExp;
  /** Leave out this many matching calls first. Default 0. */
  readonly skip?: number;
  /** Then do it for this many matching calls. Default 1. */
  readonly times?: number;
  /** Before the inner call: it never happens. After: it took effect, but the caller does not hear of it. Default before. */
  readonly at?: "before" | "after";
  readonly fault: Fault;
}

/** The script of a `FaultStore`. Hooks run before the rules of their time; what they throw, the caller gets. */
export interface FaultScript {
  readonly rules?: readonly FaultRule[];
  readonly before?: (call: StoreCall) => void | Promise<void>;
  /** After the inner call succeeded: the place to kill the process. */
  readonly after?: (call: StoreCall) => void | Promise<void>;
  /** During a put, with the bytes taken so far. What it throws fails the put. */
  readonly during?: (call: StoreCall, bytes: number) => void;
}

/** Lets a store fail, hang or lose answers by script: to test what stands on it. */
export class FaultStore extends StoreWrapper {
  readonly #script: FaultScript;
  /** By rule: the matching calls so far. */
  readonly #matches = new Map<FaultRule, number>();
  readonly #closing = new AbortController();
  #calls = 0;

  constructor(inner: ObjectStore, script: FaultScript) {
    super(inner);
    this.#script = script;
  }

  override put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    return this.#run("put", [key], options.signal, (call) => {
      const { during } = this.#script;
      if (during === undefined) return this.inner.put(key, body, options);
      const onProgress = (bytes: number): void => {
        during(call, bytes);
        options.onProgress?.(bytes);
      };
      return this.inner.put(key, body, { ...options, onProgress });
    });
  }

  override get(key: string, options: GetOptions = {}): Promise<StoredObject> {
    return this.#run("get", [key], options.signal, async (_, cut) => {
      const object = await this.inner.get(key, options);
      return cut === undefined ? object : { ...object, body: cutAfter(object.body, cut, key) };
    });
  }

  override head(key: string, options: CallOptions = {}): Promise<ObjectInfo | undefined> {
    return this.#run("head", [key], options.signal, () => this.inner.head(key, options));
  }

  override async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<ObjectInfo> {
    const turn = this.#begin("list", [prefix]);
    await this.#fault(turn, "before", options.signal);
    yield* this.inner.list(prefix, options);
    await this.#fault(turn, "after", options.signal);
  }

  override delete(keys: string | readonly string[], options: CallOptions = {}): Promise<void> {
    const all = typeof keys === "string" ? [keys] : keys;
    return this.#run("delete", all, options.signal, () => this.inner.delete(keys, options));
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new StoreError("store_closed", `${this.url} was closed during the call.`));
    await super[Symbol.asyncDispose]();
  }

  async #run<T>(
    kind: StoreCall["kind"],
    keys: readonly string[],
    signal: AbortSignal | undefined,
    effect: (call: StoreCall, cut: number | undefined) => Promise<T>,
  ): Promise<T> {
    const turn = this.#begin(kind, keys);
    await this.#fault(turn, "before", signal);
    const cut = turn.faults.map((rule) => rule.fault).find((fault) => fault.type === "cut");
    const result = await effect(turn.call, cut?.bytes);
    await this.#fault(turn, "after", signal);
    return result;
  }

  /** Chooses the faults of a call when it begins, so that racing calls are counted in the order they were made. */
  #begin(kind: StoreCall["kind"], keys: readonly string[]): { call: StoreCall; faults: readonly FaultRule[] } {
    const call: StoreCall = { kind, keys, number: ++this.#calls };
    const faults = (this.#script.rules ?? []).filter((rule) => {
      if (!matches(rule, call)) return false;
      const seen = this.#matches.get(rule) ?? 0;
      this.#matches.set(rule, seen + 1);
      const { skip = 0, times = 1 } = rule;
      return seen >= skip && seen < skip + times;
    });
    return { call, faults };
  }

  async #fault(
    turn: { call: StoreCall; faults: readonly FaultRule[] },
    at: "before" | "after",
    signal: AbortSignal | undefined,
  ): Promise<void> {
    await this.#script[at]?.(turn.call);
    for (const rule of turn.faults) {
      if ((rule.at ?? "before") === at) await this.#happen(rule.fault, turn.call, signal);
    }
  }

  async #happen(fault: Fault, call: StoreCall, signal: AbortSignal | undefined): Promise<void> {
    const signals = signal === undefined ? [this.#closing.signal] : [this.#closing.signal, signal];
    switch (fault.type) {
      case "fail":
        throw fault.error ?? injected(`${call.kind} ${call.keys.join(", ")}`);
      case "hang":
        return hang(AbortSignal.any(signals));
      case "delay":
        await sleep(fault.milliseconds);
        for (const each of signals) each.throwIfAborted();
    }
  }
}

function matches(rule: FaultRule, call: StoreCall): boolean {
  if (rule.on !== undefined && rule.on !== call.kind) return false;
  const { key } = rule;
  if (key === undefined) return true;
  return call.keys.some((each) =>
    typeof key === "string" ? key === each : new RegExp(key, key.flags.replace("g", "")).test(each),
  );
}

function injected(what: string): StoreError {
  return new StoreError("injected_fault", `${what} failed because a test wants it to.`, { retryable: true });
}

function hang(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

async function* cutAfter(body: AsyncIterable<Uint8Array>, bytes: number, key: string): AsyncGenerator<Uint8Array> {
  let left = bytes;
  for await (const chunk of body) {
    if (chunk.length > left) {
      if (left > 0) yield chunk.subarray(0, left);
      throw injected(`get ${key}`);
    }
    left -= chunk.length;
    yield chunk;
  }
}
