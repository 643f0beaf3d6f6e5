/**
 * A store whose calls take effect when the schedule says so, which need not be when they are answered: a request may be
 * lost, take effect after it was reported as failed, twice, or when its caller is dead; and its answer may be wrong.
 */

import { decodeEntry, encodeStub, isStub, scrubEntry, stubOf } from "@eider/catalog";
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
import { LOG } from "../../src/shared/log.js";
import type { SimProcess } from "./sim-process.js";

interface SimObject {
  readonly info: ObjectInfo;
  readonly bytes: Uint8Array;
}

/** What the store holds, whoever asks. */
export class SimBucket {
  objects = new Map<string, SimObject>();
  /** Every entry as it was committed: stubs come later. */
  entries = new Map<string, Uint8Array>();
  /** Keys that were ever put with another content than they had, but for what hosts say of themselves. */
  readonly overwritten: string[] = [];
  /** The first entry that this version cannot read. */
  firstNewer = Number.POSITIVE_INFINITY;
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
    if (isEntry(key)) this.#keepEntry(key, bytes);
    else if (before && !isChangeable(key, bytes) && Buffer.compare(before.bytes, bytes) !== 0) {
      this.overwritten.push(key);
    }
    const info: ObjectInfo = { key, size: bytes.length, etag: `"${++this.#writes}"`, modifiedAt: this.#now() };
    this.objects.set(key, { info, bytes });
    return info;
  }

  /** A number belongs to its first entry for ever, whatever was deleted since. */
  #keepEntry(key: string, bytes: Uint8Array): void {
    const entry = this.entries.get(key);
    if (!entry) {
      const plain = understood(bytes);
      this.entries.set(key, plain);
      if (plain !== bytes) this.firstNewer = Math.min(this.firstNewer, Number(key.slice(LOG.length)));
    } else if (isStub(entry)) {
      // The last one of a copy, whose others are in no log.
      if (Buffer.compare(bytes, entry) !== 0) this.overwritten.push(key);
    } else if (
      Buffer.compare(bytes, encodeStub(stubOf(decodeEntry(entry)))) !== 0 &&
      !isScrubbed(entry, understood(bytes))
    ) {
      this.overwritten.push(key);
    }
  }

  /** Whether an entry is one that this version cannot read. */
  isNewer(key: string): boolean {
    const bytes = this.objects.get(key)?.bytes;
    return bytes !== undefined && understood(bytes) !== bytes;
  }

  /** What it holds now; to be called later, when it holds that again. */
  backup(): () => void {
    const [objects, entries] = [new Map(this.objects), new Map(this.entries)];
    const { firstNewer } = this;
    return () => {
      this.firstNewer = firstNewer;
      this.objects = new Map(objects);
      this.entries = new Map(entries);
    };
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

/** What hosts say of themselves, and that a lake goes on elsewhere. */
function isChangeable(key: string, bytes: Uint8Array): boolean {
  return key.startsWith("_eider/hosts/") || (key === "_eider/lake.json" && Buffer.from(bytes).includes('"moved":true'));
}

/** Whether it is the entry but for some texts of rejects, of which simulated entries have few. */
function isScrubbed(entry: Uint8Array, bytes: Uint8Array): boolean {
  if (isStub(bytes)) return false;
  const all = new Set(Array.from({ length: 10 }, (_, ordinal) => ordinal));
  const [one, other] = [entry, bytes].map((form) => scrubEntry(form, all) ?? form);
  return Buffer.compare(one!, other!) === 0;
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
  readonly #version: Version;

  constructor(bucket: SimBucket, process: SimProcess, version: Version) {
    this.#bucket = bucket;
    this.#process = process;
    this.#version = version;
  }

  async put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    options.signal?.throwIfAborted();
    const given = await readBody(body, {});
    const ifAbsent = options.ifAbsent ?? false;
    // Whose texts are taken out stays the entry that it was.
    const asNewer = this.#version === "newer" && isEntry(key) && (ifAbsent || this.#bucket.isNewer(key));
    const bytes = asNewer ? ofNewer(given) : given;
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
    const bytes = this.#version === "newer" && isEntry(key) ? understood(object.bytes) : object.bytes;
    const { start, end } = resolveRange(options.range, bytes.length);
    const body = (async function* () {
      yield end - start === bytes.length ? bytes : bytes.slice(start, end);
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

/** What a process runs: this version, or one after it, whose entries this one is too old to read. */
export type Version = "this" | "newer";

/** Of as many bytes: the length of a header stays. */
const OLD_MARK = '"minReader":1';
const NEW_MARK = '"minReader":3';

function isEntry(key: string): boolean {
  return key.startsWith(LOG);
}

/** An entry as a newer version writes it. Stubs are the same in both. */
function ofNewer(entry: Uint8Array): Uint8Array {
  return marked(entry, OLD_MARK, NEW_MARK);
}

/** And as a newer version reads it. */
export function understood(entry: Uint8Array): Uint8Array {
  return marked(entry, NEW_MARK, OLD_MARK);
}

function marked(entry: Uint8Array, from: string, to: string): Uint8Array {
  const bytes = Buffer.from(entry);
  const at = isStub(bytes) ? -1 : bytes.indexOf(from);
  if (at < 0) return entry;
  bytes.write(to, at);
  return bytes;
}

/** What an object is for, for the report of what was hit. */
function kindOf(key: string): string {
  if (isEntry(key)) return "log";
  if (key.startsWith("_eider/checkpoint/")) return "checkpoint";
  if (key.startsWith("_eider/")) return "lake file";
  return key === "" ? "all" : "data";
}
