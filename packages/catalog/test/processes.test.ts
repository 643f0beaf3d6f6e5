/** Several processes on one catalog file, and processes that are killed. */

import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { append, connect, create, draft, tempFolder } from "./fixtures.js";
import { bundleWorker, startWorker } from "./processes.js";

let script = "";
let remove = async (): Promise<void> => {};
beforeAll(async () => {
  ({ script, remove } = await bundleWorker());
});
afterAll(() => remove());

/** What must hold of any catalog at any time. */
async function expectConsistent(catalog: SqliteCatalog, path: string): Promise<void> {
  const snapshots = await catalog.snapshots({ limit: 100_000 });
  expect(snapshots.map(({ snapshot }) => snapshot)).toEqual(snapshots.map((_, i) => i + 1));
  for (const table of await catalog.tables()) {
    const files = await catalog.files(table.id, undefined, { statistics: false });
    const batches = await catalog.batches(table.id, { limit: 100_000 });
    expect(files.reduce((sum, file) => sum + file.rows, 0)).toBe(table.rows);
    expect(batches.reduce((sum, receipt) => sum + receipt.rows, 0)).toBe(table.rows);
  }
  const database = connect(path);
  try {
    expect(database.all("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(database.all("PRAGMA foreign_key_check")).toEqual([]);
  } finally {
    database.close();
  }
}

describe("processes on one catalog", () => {
  it("that race for the same batches commit each once, and all get the same receipts (D36)", async () => {
    const path = join(tempFolder(), "c.sqlite");
    const workers = Array.from({ length: 6 }, () => startWorker(script, ["race", path, "25"]));
    const answers = await Promise.all(workers.map(({ ended }) => ended));
    for (let i = 0; i < 25; i++) {
      const statuses = answers.map((lines) => lines[i]!.split(" ")[0]).sort();
      expect(statuses).toEqual(["committed", ...Array<string>(5).fill("duplicate")]);
      expect(new Set(answers.map((lines) => lines[i]!.replace(/^\w+ /, ""))).size).toBe(1);
    }
    await using catalog = await SqliteCatalog.open({ path, mode: "open" });
    expect(await catalog.head()).toMatchObject({ snapshot: 25 });
    expect(await catalog.tables()).toMatchObject([{ rows: 25, files: 25 }]);
    await expectConsistent(catalog, path);
  });

  it("write past a third that holds a read (D40)", async () => {
    const path = join(tempFolder(), "c.sqlite");
    await using catalog = await SqliteCatalog.open({ path });
    await catalog.commit(draft(create("t1", "other")));
    const reader = connect(path);
    reader.exec("BEGIN");
    reader.all("SELECT * FROM entries");
    const workers = [startWorker(script, ["append", path]), startWorker(script, ["append", path])];
    while (workers.some(({ lines }) => lines.length < 100)) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      for (const { process } of workers) expect(process.exitCode).toBeNull();
    }
    for (const { process } of workers) process.kill("SIGKILL");
    await Promise.all(workers.map(({ exit }) => exit));
    reader.close();
    const acknowledged = workers.flatMap(({ lines }) => lines);
    const table = (await catalog.table("events"))!;
    const committed = new Set((await catalog.batches(table.id, { limit: 100_000 })).map(({ batchId }) => batchId));
    for (const batch of acknowledged) expect(committed).toContain(batch);
    await expectConsistent(catalog, path);
  });

  it("that create the same catalog at the same moment share it, fifty times (D41)", async () => {
    const folder = tempFolder();
    const rounds = 50;
    const everyMs = 150;
    const start = Date.now() + 1500;
    const args = (batch: string): string[] => ["create", folder, batch, `${rounds}`, `${start}`, `${everyMs}`];
    const [a, b] = await Promise.all([startWorker(script, args("a")).ended, startWorker(script, args("b")).ended]);
    const keys = new Set<string>();
    for (let round = 0; round < rounds; round++) {
      const path = join(folder, `${round}`, "catalog.sqlite");
      await using catalog = await SqliteCatalog.open({ path, mode: "open" });
      for (const answer of [a[round]!, b[round]!]) {
        expect(answer).toMatch(new RegExp(`^${catalog.lakeId} committed `));
      }
      const [table, ...more] = await catalog.tables();
      expect(more).toEqual([]);
      expect(table).toMatchObject({ rows: 2, files: 2 });
      expect((await catalog.snapshots()).map(({ snapshot }) => snapshot)).toEqual([1, 2]);
      for (const { key } of await catalog.files(table!.id)) keys.add(key);
    }
    expect(keys.size).toBe(2 * rounds);
  });

  it("that are killed at any moment leave what they acknowledged, and nothing by halves (D38)", async () => {
    const path = join(tempFolder(), "c.sqlite");
    const acknowledged: string[] = [];
    for (let round = 0; round < 12; round++) {
      const worker = startWorker(script, ["append", path]);
      const enough = 3 + 2 * round;
      while (worker.lines.length < enough && worker.process.exitCode === null) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      worker.process.kill("SIGKILL");
      expect(await worker.exit).toBe("SIGKILL");
      acknowledged.push(...worker.lines);

      await using catalog = await SqliteCatalog.open({ path, mode: "open" });
      await expectConsistent(catalog, path);
      const [table] = await catalog.tables();
      const committed = (await catalog.batches(table!.id, { limit: 100_000 })).map(({ batchId }) => batchId);
      for (const batch of acknowledged) expect(committed).toContain(batch);
      // At most the one that it was about to acknowledge is more, per kill.
      expect(committed.length - acknowledged.length).toBeLessThanOrEqual(round + 1);
      // Its intents stay, so that vacuum sees what it may have staged.
      expect((await catalog.intents()).length).toBeLessThanOrEqual(round + 1);
      // A retry of what was last is a duplicate.
      const again = await catalog.commit(draft(append(table!.id, acknowledged.at(-1)!, ["another key"])));
      expect(again).toMatchObject({ status: "duplicate" });
    }
  });
});

describe("a folder that cannot be written", () => {
  /** Runs the reader as a user without rights in the folder; root would have them. */
  function unprivileged(): number | undefined {
    return process.getuid?.() === 0 ? 65534 : undefined;
  }

  it.skipIf(process.platform === "win32")("can be read, whether a writer is at work or not", async () => {
    const folder = tempFolder();
    const path = join(folder, "c.sqlite");
    chmodSync(folder, 0o755);
    chmodSync(dirname(script), 0o755);
    const writer = await SqliteCatalog.open({ path });
    await writer.commit(draft(create("t1", "events"), append("t1", "b", ["k"])));
    const user = unprivileged();
    const lock = (): void => {
      if (user === undefined) chmodSync(folder, 0o555);
    };
    // The log and its index are there: they are read.
    lock();
    expect(await startWorker(script, ["read", path], user).ended).toEqual(["[1,[1]]"]);
    chmodSync(folder, 0o755);
    await writer[Symbol.asyncDispose]();
    expect(existsSync(`${path}-wal`)).toBe(false);
    // The file alone: a copy of it is read, and a later commit is seen all the same.
    lock();
    const reader = startWorker(script, ["read", path, "1500"], user);
    while (!reader.lines.includes("waiting") && reader.process.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    chmodSync(folder, 0o755);
    expect(existsSync(`${path}-shm`)).toBe(false);
    const again = await SqliteCatalog.open({ path });
    await again.commit(draft(append("t1", "c", ["k2"])));
    await again[Symbol.asyncDispose]();
    expect(await reader.ended).toEqual(["[1,[1]]", "waiting", "[2,[2]]"]);
  });

  it.skipIf(process.platform === "win32")(
    "with a log that cannot be joined is refused, not read without it",
    async () => {
      const folder = tempFolder();
      const path = join(folder, "c.sqlite");
      chmodSync(folder, 0o755);
      await using writer = await SqliteCatalog.open({ path });
      await writer.commit(draft(create("t1", "events")));
      const copy = join(folder, "copy");
      mkdirSync(copy);
      // As a backup of the two files looks: the index of the log is missing.
      for (const end of ["", "-wal"]) copyFileSync(path + end, join(copy, "c.sqlite") + end);
      expect(statSync(join(copy, "c.sqlite-wal")).size).toBeGreaterThan(0);
      const user = unprivileged();
      if (user === undefined) chmodSync(copy, 0o555);
      expect(await startWorker(script, ["read", join(copy, "c.sqlite")], user).ended).toEqual(["catalog_unavailable"]);
      chmodSync(copy, 0o755);
    },
  );
});

it("a native module that is not built is named with its fix", async () => {
  const require = createRequire(import.meta.url);
  const folder = tempFolder();
  const sqlite = dirname(require.resolve("better-sqlite3/package.json"));
  const bindings = createRequire(join(sqlite, "package.json")).resolve("bindings/package.json");
  const filePath = createRequire(bindings).resolve("file-uri-to-path/package.json");
  for (const [name, from] of Object.entries({ bindings: dirname(bindings), "file-uri-to-path": dirname(filePath) })) {
    cpSync(from, join(folder, "node_modules", name), { recursive: true });
  }
  const copy = join(folder, "node_modules", "better-sqlite3");
  cpSync(join(sqlite, "lib"), join(copy, "lib"), { recursive: true });
  copyFileSync(join(sqlite, "package.json"), join(copy, "package.json"));
  // The same worker, with better-sqlite3 from there.
  const text = readFileSync(script, "utf8").replace(/"file:[^"]*better-sqlite3[^"]*"/, '"better-sqlite3"');
  writeFileSync(join(folder, "worker.mjs"), text);
  const run = startWorker(join(folder, "worker.mjs"), ["better-sqlite3", ":memory:"]);
  expect(await run.ended).toEqual(["native_module_missing"]);
});
