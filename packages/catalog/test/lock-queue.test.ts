/** Who goes first at the lock of a catalog file, among those who say that they wait. */

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { LockQueue } from "../src/lock-queue.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { create, draft, tempFolder } from "./fixtures.js";

/** A queue in a folder that is not made yet, with a clock to be set. */
function newQueue(): { queue: LockQueue; folder: string; clock: { now: number } } {
  const folder = join(tempFolder(), "waiting");
  const clock = { now: 1_900_000_000_000 };
  let random = 0;
  const queue = new LockQueue({
    folder,
    clock: () => clock.now,
    random: (size) => new Uint8Array(size).fill(random++),
  });
  return { queue, folder, clock };
}

describe("at the lock", () => {
  it("whoever has not waited long tries as it comes, and leaves no sign", () => {
    const { queue, folder, clock } = newQueue();
    const place = queue.place();
    expect(place.isTurn()).toBe(true);
    clock.now += 19;
    expect(place.pause(7)).toBe(7);
    expect(existsSync(folder)).toBe(false);
  });

  it("whoever has goes first, in the order of arrival; others make way", () => {
    const { queue, folder, clock } = newQueue();
    const first = queue.place();
    clock.now += 1;
    const second = queue.place();
    clock.now += 30;
    // The second says so first.
    expect(second.pause(7)).toBe(2);
    expect(first.pause(7)).toBe(2);
    expect(readdirSync(folder)).toHaveLength(2);
    const newcomer = queue.place();
    expect([first, second, newcomer].map((place) => place.isTurn())).toEqual([true, false, false]);
    expect([first, second, newcomer].map((place) => place.pause(7))).toEqual([2, 2, 7]);
    first[Symbol.dispose]();
    expect([second, newcomer].map((place) => place.isTurn())).toEqual([true, false]);
    second[Symbol.dispose]();
    expect(newcomer.isTurn()).toBe(true);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("nobody waits for a queue that does not move", () => {
    const { queue, clock } = newQueue();
    const stuck = queue.place();
    clock.now += 20;
    stuck.pause(1);
    const place = queue.place();
    const turns = Array.from({ length: 12 }, () => place.isTurn());
    // The first look sees who is in front; after 5 more it has seen enough, and so again.
    expect(turns.flatMap((turn, i) => (turn ? [i] : []))).toEqual([5, 10]);
  });

  it("signs of processes that are gone are removed, and what is no sign is left alone", () => {
    const { queue, folder, clock } = newQueue();
    const old = queue.place();
    clock.now += 20;
    old.pause(1);
    writeFileSync(join(folder, "README"), "");
    const { pid } = spawnSync(process.execPath, ["--version"]);
    const [sign] = readdirSync(folder);
    writeFileSync(join(folder, sign!.replace(`-${process.pid}-`, `-${pid}-`)), "");
    expect(readdirSync(folder)).toHaveLength(3);
    expect(queue.place().isTurn()).toBe(false);
    expect(readdirSync(folder)).toEqual([sign, "README"]);
    clock.now += 10_000;
    expect(queue.place().isTurn()).toBe(true);
    expect(readdirSync(folder)).toEqual(["README"]);
    old[Symbol.dispose]();
  });

  it("a folder that cannot be used stops nobody", () => {
    const { queue, folder, clock } = newQueue();
    writeFileSync(folder, "");
    const place = queue.place();
    clock.now += 20;
    expect(place.isTurn()).toBe(true);
    expect(place.pause(7)).toBe(7);
    place[Symbol.dispose]();
  });
});

it("a commit makes way for one who waits, and goes on where that one does nothing", async () => {
  const path = join(tempFolder(), "c.sqlite");
  const sleeps: number[] = [];
  const now = 1_900_000_000_000;
  await using catalog = await SqliteCatalog.open({
    path,
    clock: () => now,
    timer: {
      now: () => 0,
      sleep: async (milliseconds) => void sleeps.push(milliseconds),
      turn: async () => {},
    },
  });
  await catalog.commit(draft(create("t1", "one")));
  expect(sleeps).toEqual([]);
  const folder = `${path}-waiting`;
  const waits = new LockQueue({
    folder,
    clock: clockOf(now - 100, now),
    random: (size) => new Uint8Array(size),
  }).place();
  waits.pause(1);
  expect(await catalog.commit(draft(create("t2", "two")))).toMatchObject({ snapshot: 2 });
  expect(sleeps).toHaveLength(5);
  waits[Symbol.dispose]();
  await catalog.commit(draft(create("t3", "three")));
  expect(sleeps).toHaveLength(5);
});

/** Tells these times one after the other, and the last one for ever. */
function clockOf(...times: number[]): () => number {
  return () => (times.length > 1 ? times.shift()! : times[0]!);
}
