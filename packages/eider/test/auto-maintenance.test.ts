import { realTimer, SqliteCatalog } from "@eider/catalog";
import { MemoryStore } from "@eider/storage";
import { describe, expect, it, vi } from "vitest";
import { AutoMaintenance } from "../src/auto-maintenance.js";
import { Lake } from "../src/lake.js";
import { appendHot } from "./support/hot-rows.js";

function opened(work: (signal: AbortSignal) => Promise<unknown>) {
  const time = { now: 0 };
  const warnings: unknown[] = [];
  const logger = { warn: (_: string, details?: Readonly<Record<string, unknown>>) => warnings.push(details?.error) };
  const maintenance = new AutoMaintenance({ timer: { ...realTimer, now: () => time.now }, logger, work });
  return { maintenance, time, warnings };
}

/** What only waits for its turn has had it. */
async function settled(): Promise<void> {
  for (let i = 0; i < 3; i++) await realTimer.turn();
}

describe("maintenance in the background", () => {
  it("works once for many appends, or for one after a while", async () => {
    let looks = 0;
    const { maintenance, time } = opened(async () => looks++);
    for (let i = 0; i < 255; i++) maintenance.appended();
    expect(looks).toBe(0);
    maintenance.appended();
    expect(looks).toBe(1);
    await settled();
    time.now += 9_999;
    maintenance.appended();
    expect(looks).toBe(1);
    time.now += 1;
    maintenance.appended();
    expect(looks).toBe(2);
  });

  it("never works twice at a time, and goes on after a failure", async () => {
    let begun = 0;
    let fail: (error: unknown) => void = () => undefined;
    const { maintenance, time, warnings } = opened(() => {
      begun++;
      return new Promise((_, reject) => {
        fail = reject;
      });
    });
    const later = (): void => {
      time.now += 10_000;
      maintenance.appended();
    };
    later();
    later();
    expect(begun).toBe(1);
    fail("no room");
    await settled();
    expect(warnings).toEqual(["no room"]);
    later();
    expect(begun).toBe(2);
  });

  it("ends with its lake: aborted, waited for, and without a word", async () => {
    const { maintenance, time, warnings } = opened(
      (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    );
    time.now += 10_000;
    maintenance.appended();
    await maintenance[Symbol.asyncDispose]();
    maintenance.appended();
    await maintenance[Symbol.asyncDispose]();
    expect(warnings).toEqual([]);
  });
});

describe("a lake that maintains itself", () => {
  const THOUSAND = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`b${i}`, [{ id: i }]]));

  it.each(["auto", "manual"] as const)("%s", async (maintenance) => {
    let now = 0;
    const store = new MemoryStore();
    const catalog = await SqliteCatalog.open({ path: ":memory:" });
    await using lake = await Lake.open({ store, catalog }, { maintenance, timer: { ...realTimer, now: () => now } });
    const table = lake.table("t", { schema: { id: "int64" } });
    await table.create();
    await appendHot(catalog, "t", THOUSAND);
    now += 10_000;
    await table.append([{ id: 1000 }]);
    if (maintenance === "auto") {
      await vi.waitFor(async () => expect((await catalog.table("t"))?.hotBatches).toBeLessThan(1000), {
        timeout: 20_000,
      });
    } else {
      await settled();
      expect((await catalog.table("t"))?.hotBatches).toBeGreaterThanOrEqual(1000);
    }
    expect(await lake.sql("SELECT count(*) AS n, sum(id)::BIGINT AS s FROM t")).toEqual([{ n: 1001n, s: 500_500n }]);
  });
});
