/**
 * A store whose calls take effect when the schedule says so, which need not be when they are answered: a request may be
 * lost, take effect after it was reported as failed, twice, or when its caller is dead; and its answer may be wrong.
 */

import { decodeEntry, encodeStub, stubOf } from "@eider/catalog";
import { AlreadyExistsError, NotFoundError, StoreError } from "@eider/core";
import type {
  GetOptions,
  ListOptions,
  ObjectBody,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  StoredObject,
} from "@eider/storage";
import { compareKeys, readBody, resolveRange } from "@eider/storage";
import type { SimProcess } from "./sim-process.js";

interface SimObject {
  readonly info: ObjectInfo;
  readonly bytes: Uint8Array;
}

/** What the store holds, whoever asks. */
export class SimBucket {
  readonly objects = new Map<string, SimObject>();
  /** Every entry as it was committed: stubs come later. */
  readonly entries = new Map<string, Uint8Array>();
  /** Keys that were ever put with another content than they had, but for what hosts say of themselves. */
  readonly overwritten: string[] = [];
  /** Calls that go on failing: a store that fails does so for a while. */
  outage = 0;
  readonly #now: () => number;
  #writes = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Undefined if the key is taken and must not be. */
  put(key: string, bytes: Uint8Array, ifAbsent: boolean): ObjectInfo | undefined {
    const before = this.objects.get(key);
    if (before && ifAbsent) return undefined;
    if (key.startsWith("_eider/log/")) this.#keepEntry(key, bytes);
    else if (!key.startsWith("_eider/hosts/") && before && Buffer.compare(before.bytes, bytes) !== 0) {
      this.overwritten.push(key);
    }
    const info: ObjectInfo = { key, size: bytes.length, etag: `"${++this.#writes}"`, modifiedAt: this.#now() };
    this.objects.set(key, { info, bytes });
    return info;
  }

  /** A number belongs to its first entry for ever, whatever was deleted since. */
  #keepEntry(key: string, bytes: Uint8Array): void {
    const entry = this.entries.get(key);
    if (!entry) this.entries.set(key, bytes);
    else if (Buffer.compare(bytes, encodeStub(stubOf(decodeEntry(entry)))) !== 0) this.overwritten.push(key);
  }

  /** As a disk that lies: the object is as long as it was. */
  damage(key: string): void {
    const object = this.objects.get(key)!;
    const bytes = Uint8Array.from(object.bytes);
    const middle = bytes.length >> 1;
    bytes[middle] = bytes[middle]! ^ 1;
    this.objects.set(key, { ...object, bytes });
  }

  keys(prefix: string, after = ""): string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort(compareKeys);
  }
}

/** What can go wrong with a put. */
const PUT_FAULTS = [
  "lost", // never takes effect; the caller hears of a failure
  "late", // the caller hears of a failure; it may take effect later
  "unanswered", // takes effect; the caller hears of a failure
  "refused", // takes effect; the caller hears that somebody else's was there first (its own, sent twice)
  "busy", // 409: never takes effect, asks to try again
  "twice", // takes effect, and may once more later
] as const;

/** One process's view of the bucket. */
export class SimStore implements ObjectStore {
  readonly url = "sim:";
  readonly capabilities = {
    conditionalPut: true,
    conditionalReplace: false,
    maxObjectBytes: Number.POSITIVE_INFINITY,
    maxConditionalBytes: Number.POSITIVE_INFINITY,
  };
  readonly #bucket: SimBucket;
  readonly #process: SimProcess;

  constructor(bucket: SimBucket, process: SimProcess) {
    this.#bucket = bucket;
    this.#process = process;
  }

  async put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    options.signal?.throwIfAborted();
    const bytes = await readBody(body, {});
    const ifAbsent = options.ifAbsent ?? false;
    const step = `put ${kindOf(key)}`;
    // Only conditional puts can be refused for being there already.
    const fault = await this.#begin(step, key, ifAbsent ? PUT_FAULTS : PUT_FAULTS.filter((f) => f !== "refused"));
    const effect = (): ObjectInfo | undefined => this.#bucket.put(key, bytes, ifAbsent);
    if (fault === "late") this.#process.scheduler.defer(`${step} ${key}`, effect);
    const applies = fault !== "lost" && fault !== "late" && fault !== "busy";
    const done = applies ? effect() : undefined;
    if (fault === "twice") this.#process.scheduler.defer(`${step} ${key}, again`, effect);
    await this.#process.stop(`${step}: answer`);
    if (fault === "refused" || (applies && !done)) {
      throw new AlreadyExistsError("object_exists", `${key} exists`, { subject: key });
    }
    if (done && fault !== "unanswered") return done;
    if (fault === "busy") throw new StoreError("sim_busy", `409 for ${key}`, { retryable: true, subject: key });
    throw new StoreError(fault === "lost" ? "sim_lost" : "put_unsettled", `no answer for ${key}`, {
      retryable: true,
      subject: key,
    });
  }

  async get(key: string, options: GetOptions = {}): Promise<StoredObject> {
    const object = await this.#read(`get ${kindOf(key)}`, key, () => this.#bucket.objects.get(key));
    if (!object) throw new NotFoundError("object_not_found", `there is no object ${key}`, { subject: key });
    const { start, end } = resolveRange(options.range, object.bytes.length);
    const body = (async function* () {
      yield end - start === object.bytes.length ? object.bytes : object.bytes.slice(start, end);
    })();
    return { ...object.info, body };
  }

  head(key: string): Promise<ObjectInfo | undefined> {
    return this.#read(`head ${kindOf(key)}`, key, () => this.#bucket.objects.get(key)?.info);
  }

  async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<ObjectInfo> {
    // A page at a time, as stores answer: what comes or goes between two pages is seen or not.
    const size = 3;
    for (let after = options.after ?? ""; ; ) {
      const page = await this.#read(`list ${kindOf(prefix)}`, prefix, () =>
        this.#bucket.keys(prefix, after).slice(0, size),
      );
      for (const key of page) {
        const info = this.#bucket.objects.get(key)?.info;
        if (info) yield info;
      }
      if (page.length < size) return;
      after = page.at(-1)!;
    }
  }

  async delete(keys: string | readonly string[]): Promise<void> {
    const all = typeof keys === "string" ? [keys] : keys;
    if (all.length === 0) return;
    const step = `delete ${kindOf(all[0]!)}`;
    const fault = await this.#begin(step, all.join(" "), ["lost", "late", "unanswered"]);
    const effect = (): void => {
      for (const key of all) this.#bucket.objects.delete(key);
    };
    if (fault === "late") this.#process.scheduler.defer(`${step} ${all.join(" ")}`, effect);
    else if (fault !== "lost") effect();
    await this.#process.stop(`${step}: answer`);
    if (fault) throw new StoreError("sim_lost", `no answer for deleting ${all[0]}`, { retryable: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #read<T>(step: string, key: string, look: () => T): Promise<T> {
    const fault = await this.#begin(step, key, ["lost"]);
    const found = look();
    await this.#process.stop(`${step}: answer`);
    if (fault) throw new StoreError("sim_lost", `no answer for ${key}`, { retryable: true, subject: key });
    return found;
  }

  async #begin<F extends string>(step: string, subject: string, faults: readonly F[]): Promise<F | undefined> {
    const process = this.#process;
    await process.stop(`${step} ${subject}`);
    const down = this.#bucket.outage > 0 && process.faulty;
    if (down) this.#bucket.outage--;
    const fault = down ? faults[process.choices.pick("fault", 2) % faults.length] : process.fault(step, faults);
    if (fault && !down && process.choices.rarely("fault", 6, 1) === 1) {
      this.#bucket.outage = 1 + process.choices.pick("fault", 20);
    }
    if (fault) process.scheduler.note(`  ${fault}`);
    return fault;
  }
}

/** What an object is for, for the report of what was hit. */
function kindOf(key: string): string {
  if (key.startsWith("_eider/log/")) return "log";
  if (key.startsWith("_eider/checkpoint/")) return "checkpoint";
  if (key.startsWith("_eider/")) return "lake file";
  return key === "" ? "all" : "data";
}
