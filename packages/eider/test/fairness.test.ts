/** Hosts that let each other commit: by a timer that only the test moves. */

import { CountingStore, MemoryStore, type ObjectStore } from "@eider/storage";
import { expect, it } from "vitest";
import { Fairness } from "../src/shared/fairness.js";
import { keysOf } from "./support/objects.js";

function setUp() {
  let time = 0;
  const slept: number[] = [];
  const timer = {
    now: () => time,
    async sleep(ms: number) {
      slept.push(ms);
      time += ms;
    },
    async turn() {},
  };
  const store = new CountingStore(new MemoryStore({ clock: () => time }));
  const host = (name: string, on: ObjectStore = store): Fairness =>
    new Fairness({ store: on, timer, now: () => time, jitter: () => 0.5, host: name });
  const pass = (ms: number): void => {
    time += ms;
  };
  /** Commits of 10 ms each, one after the other; the gaps between them. */
  const commits = async (by: Fairness, ms: number): Promise<number[]> => {
    slept.length = 0;
    for (const end = time + ms; time < end; ) {
      await by.enter();
      time += 10;
      by.won();
    }
    return [...slept];
  };
  return { store, host, pass, commits, slept };
}

it("who commits alone leaves no gap, and asks for others once in two seconds", async () => {
  const { store, host, commits } = setUp();
  expect(await commits(host("a"), 10_000)).toEqual([]);
  expect(store.counts.list.requests).toBe(4);
  expect(await keysOf(store)).toEqual([]);
});

it("who commits now and then asks for nothing", async () => {
  const { store, host, pass, commits } = setUp();
  const a = host("a");
  for (let i = 0; i < 20; i++) {
    await commits(a, 1000);
    pass(200);
  }
  expect(store.counts.list.requests).toBe(0);
});

it("who loses three times in a row says so, and is left a gap that is longer than its pauses", async () => {
  const { store, host, pass, commits, slept } = setUp();
  const [a, b] = [host("a"), host("b")];
  for (let losses = 1; losses <= 10; losses++) await b.lost(losses);
  expect(await keysOf(store)).toEqual(["_eider/hosts/b"]);
  expect(store.counts.put.requests).toBe(1);
  const longest = Math.max(...slept);
  const gaps = await commits(a, 10_000);
  expect(gaps.length).toBeGreaterThanOrEqual(4);
  expect(Math.min(...gaps)).toBeGreaterThan(longest);
  // It has not said so for half a minute.
  pass(30_000);
  expect(await commits(a, 10_000)).toEqual([]);
  // One that waits itself is not somebody else.
  await b.lost(3);
  expect(await commits(b, 10_000)).toEqual([]);
});

it("a store that does not answer only makes it less fair", async () => {
  const { commits, host } = setUp();
  const silent = new MemoryStore();
  silent.put = () => Promise.reject(new Error("no answer"));
  silent.list = () => {
    throw new Error("no answer");
  };
  const a = host("a", silent);
  await a.lost(3);
  expect(await commits(a, 5000)).toEqual([]);
});
