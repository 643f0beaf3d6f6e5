import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StoreError } from "@eider/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { conformanceChecks, formatReport, runCheck, runConformance } from "../src/conformance.js";
import {
  CacheStore,
  CountingStore,
  FaultStore,
  FileStore,
  MemoryStore,
  type ObjectBody,
  type ObjectInfo,
  type ObjectStore,
  PrefixStore,
  type PutOptions,
  RetryStore,
  type StoreCall,
} from "../src/index.js";
import { brokenStores } from "./broken-stores.js";
import { conformanceRun, documented } from "./conformance-run.js";

let folder: string;
let stores = 0;
const nextFolder = (): string => join(folder, String(++stores));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "eider-conformance-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Fails no put that must be sent once: its caller would have to live with that. */
class Flaky extends FaultStore {
  override put(key: string, body: ObjectBody, options?: PutOptions): Promise<ObjectInfo> {
    return options?.retries === "none" ? this.inner.put(key, body, options) : super.put(key, body, options);
  }
}

const sound: Readonly<Record<string, () => ObjectStore>> = {
  MemoryStore: () => new MemoryStore(),
  FileStore: () => new FileStore(nextFolder(), { durable: false }),
  "FileStore, durable": () => new FileStore(nextFolder()),
  "PrefixStore of a folder": () => new PrefixStore(new FileStore(nextFolder(), { durable: false }), "lakes/one"),
  "RetryStore of a store that fails every third call": () => {
    const before = ({ number }: StoreCall): void => {
      if (number % 3 === 0) throw new StoreError("store_busy", "busy", { retryable: true });
    };
    const clock = { now: Date.now, sleep: async () => undefined };
    return new RetryStore(new Flaky(new MemoryStore(), { before }), { clock });
  },
  "CacheStore, of blocks": () =>
    new CacheStore(new MemoryStore(), {
      dir: nextFolder(),
      maxBytes: 100_000_000,
      cacheable: () => true,
      wholeBytes: 50_000,
      blockBytes: 7000,
    }),
  "CacheStore that is too small": () =>
    new CacheStore(new MemoryStore(), { dir: nextFolder(), maxBytes: 20_000, cacheable: () => true }),
  "CountingStore and FaultStore": () => new CountingStore(new FaultStore(new MemoryStore(), {})),
};

for (const [name, make] of Object.entries(sound)) {
  const fast = name !== "MemoryStore" && name !== "FileStore";
  conformanceRun(name, make, { fast, withoutReplace: /^(?:File|Prefix)Store/.test(name) });
}

const ownStore = readFileSync(new URL("../../../docs/stores.md", import.meta.url), "utf8");
conformanceRun("the store of your own in docs/stores.md", await documented<() => ObjectStore>(ownStore, "mapStore"));

describe("the suite itself", () => {
  test("has at least 40 checks with different names", () => {
    const names = new Set(conformanceChecks.map(({ name }) => name));
    expect(names.size).toBe(conformanceChecks.length);
    expect(names.size).toBeGreaterThanOrEqual(40);
  });

  test.each(brokenStores)("finds a store in which $fault", async ({ check: name, make }) => {
    const check = conformanceChecks.find((each) => each.name === name);
    if (check === undefined) throw new Error(`no check is called ${name}`);
    // The same check passes on a sound store: it fails because of the fault.
    expect(await runCheck(check, async () => new MemoryStore(), { fast: true })).toMatchObject({ ok: true });
    // Only the check about hanging is meant to run into its time.
    const result = await runCheck(check, async () => make(), {
      fast: true,
      timeoutMs: name.includes("hangs") ? 500 : 20_000,
    });
    expect(result).toMatchObject({ name, ok: false, skipped: false });
    if (!name.includes("hangs")) expect(String(result.error)).not.toContain("not done after");
  });

  test("skips and names the races of a store that does not promise them", async () => {
    const make = async (): Promise<ObjectStore> =>
      Object.assign(new MemoryStore(), { capabilities: { ...new MemoryStore().capabilities, conditionalPut: false } });
    const report = await runConformance(make, { include: (name) => name.startsWith("put if absent: of racing") });
    expect(report.results.map(({ ok, skipped }) => [ok, skipped])).toEqual([
      [true, true],
      [true, true],
    ]);
    // Nothing ran, so nothing was shown.
    expect(report.ok).toBe(false);
    expect(formatReport(report)).toContain("0 passed, 0 failed, 2 skipped");
  });

  test("reports a store that cannot be made", async () => {
    const report = await runConformance(() => Promise.reject(new Error("no store here")), {
      include: (name) => name === "delete: many at once",
    });
    expect(report.ok).toBe(false);
    expect(formatReport(report)).toBe("failed: delete: many at once\n  no store here\n0 passed, 1 failed, 0 skipped");
  });
});
