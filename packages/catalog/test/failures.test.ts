/** What goes wrong below the catalog: the disk, the file, the locks. */

import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BatchConflictError, CatalogError, CorruptionError } from "@eider/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { reportUnavailable } from "../../../test/support/unavailable.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { type OpenDriver, openSqlite, type SqliteDriver } from "../src/sqlite-driver.js";
import { append, connect, create, draft, tempFolder } from "./fixtures.js";

/** An error as drivers throw it. */
const sqliteError = (code: string): Error => Object.assign(new Error(code.toLowerCase()), { code });

/**
 * The real driver, whose writing COMMITs answer as planned: `before` fails and has no effect, `after` fails although it
 * took effect. COMMITs of reads pass.
 */
function faulty(
  plan: ("ok" | "before" | "after")[],
  code = "SQLITE_IOERR_FSYNC",
): { driver: OpenDriver; opened: number[] } {
  const opened: number[] = [];
  const driver: OpenDriver = (path, options) => {
    const real = openSqlite(path, options);
    opened.push(opened.length);
    let writing = false;
    return {
      ...real,
      exec(sql) {
        if (sql.startsWith("BEGIN")) writing = sql === "BEGIN IMMEDIATE";
        const fault = sql === "COMMIT" && writing ? (plan.shift() ?? "ok") : "ok";
        if (fault !== "before") real.exec(sql);
        if (fault !== "ok") throw sqliteError(code);
      },
    };
  };
  return { driver, opened };
}

describe("a COMMIT that fails", () => {
  it.each([["after"], ["before"]] as const)(
    "%s its effect is settled by its entry id: committed once",
    async (fault) => {
      const path = join(tempFolder(), "c.sqlite");
      // The first three COMMITs are those of the migration, the table and the intent.
      const { driver, opened } = faulty(["ok", "ok", "ok", fault]);
      await using catalog = await SqliteCatalog.open({ path, driver });
      await catalog.commit(draft(create("t1", "events")));
      const { id } = await catalog.begin();
      const result = await catalog.commit({ ...draft(append("t1", "b", ["k"])), intent: id });
      expect(result).toMatchObject({ status: "committed", snapshot: 2, receipts: [{ batchId: "b", rows: 1 }] });
      expect(opened).toHaveLength(2);
      expect(await catalog.tables()).toMatchObject([{ rows: 1, files: 1 }]);
      expect(await catalog.commit(draft(append("t1", "b", ["k2"])))).toMatchObject({ status: "duplicate" });
      expect(await catalog.snapshots()).toHaveLength(2);
    },
  );

  it.each([["after"], ["before"]] as const)(
    "again and again (%s) is commit_unknown, settled by a retry",
    async (fault) => {
      const path = join(tempFolder(), "c.sqlite");
      const { driver } = faulty(["ok", "ok", fault, "before", "before", "before"]);
      // After an effect, the look at the entry id needs a COMMIT of its own, which fails as well.
      await using catalog = await SqliteCatalog.open({ path, driver });
      await catalog.commit(draft(create("t1", "events")));
      const unknown = catalog.commit(draft(append("t1", "b", ["k"])));
      await expect(unknown).rejects.toThrow(CatalogError);
      await expect(unknown).rejects.toMatchObject({ code: "commit_unknown", retryable: true });
      expect(await catalog.commit(draft(append("t1", "b", ["k"])))).toMatchObject({
        status: fault === "after" ? "duplicate" : "committed",
        receipts: [{ snapshot: 2 }],
      });
      expect(await catalog.snapshots()).toHaveLength(2);
    },
  );

  it("while another process takes the batch is settled as that one's", async () => {
    const path = join(tempFolder(), "c.sqlite");
    const { driver } = faulty(["ok", "ok", "before"]);
    await using other = await SqliteCatalog.open({ path });
    let reopened = false;
    await using catalog = await SqliteCatalog.open({
      path,
      driver: (...args) => {
        if (reopened) return openSqlite(...args);
        reopened = true;
        return driver(...args);
      },
    });
    // `open` found the catalog made, so the first planned COMMIT is the table's.
    await catalog.commit(draft(create("t1", "events")));
    await catalog.commit(draft(append("t1", "a", [])));
    const mine = catalog.commit(draft(append("t1", "b", ["k"])));
    const theirs = other.commit(draft(append("t1", "b", ["k2"], { hash: "rows:theirs" })));
    const results = await Promise.allSettled([mine, theirs]);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const lost = results.find((result) => result.status === "rejected");
    expect(lost?.reason).toBeInstanceOf(BatchConflictError);
    expect(await other.snapshots()).toHaveLength(3);
  });

  it.each([["after"], ["before"]] as const)("%s a catalog was retired: it is all the same", async (fault) => {
    const { driver } = faulty(["ok", "ok", fault]);
    await using catalog = await SqliteCatalog.open({ path: join(tempFolder(), "c.sqlite"), driver });
    await catalog.commit(draft(create("t1", "events")));
    expect(await catalog.retire(1)).toBe(true);
    await expect(catalog.commit(draft(append("t1", "b", ["k"])))).rejects.toMatchObject({ code: "lake_moved" });
  });

  it("in memory, where nothing can be opened again, is settled too", async () => {
    const { driver } = faulty(["ok", "ok", "before"]);
    await using catalog = await SqliteCatalog.open({ path: ":memory:", driver });
    await catalog.commit(draft(create("t1", "events")));
    expect(await catalog.commit(draft(append("t1", "b", ["k"])))).toMatchObject({ status: "committed", snapshot: 2 });
    expect(await catalog.tables()).toMatchObject([{ rows: 1 }]);
  });
});

describe("a full disk", () => {
  it("is told as such, changes nothing, and is over once there is room", async () => {
    const path = join(tempFolder(), "c.sqlite");
    let real: SqliteDriver | undefined;
    const driver: OpenDriver = (...args) => {
      real = openSqlite(...args);
      return real;
    };
    await using catalog = await SqliteCatalog.open({ path, driver });
    await catalog.commit(draft(create("t1", "events")));
    const pages = real?.get<{ page_count: number }>("PRAGMA page_count")?.page_count;
    real?.exec(`PRAGMA max_page_count = ${pages}`);
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
    const full = catalog.commit(draft(append("t1", "b", keys)));
    await expect(full).rejects.toMatchObject({ code: "disk_full", retryable: true });
    expect(await catalog.head()).toMatchObject({ snapshot: 1 });
    real?.exec("PRAGMA max_page_count = 1000000");
    expect(await catalog.commit(draft(append("t1", "b", keys)))).toMatchObject({ status: "committed", snapshot: 2 });
  });

  it("under the log leaves exactly what was acknowledged", async () => {
    const folder = join(tempFolder(), "small");
    mkdirSync(folder);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], { stdio: "pipe" });
    } catch {
      reportUnavailable("catalog on a full disk", "mounting a small tmpfs needs root on Linux", "sudo npm test");
      return;
    }
    onTestFinished(() => void execFileSync("umount", [folder]));
    const path = join(folder, "c.sqlite");
    let acknowledged = 0;
    {
      await using catalog = await SqliteCatalog.open({ path });
      await catalog.commit(draft(create("t1", "events")));
      const filling = async (): Promise<never> => {
        for (;;) {
          const keys = Array.from({ length: 50 }, (_, i) => `${acknowledged}/${i}`);
          await catalog.commit(draft(append("t1", `b-${acknowledged}`, keys)));
          acknowledged++;
        }
      };
      await expect(filling()).rejects.toMatchObject({ code: "disk_full" });
      expect(await catalog.tables()).toMatchObject([{ files: 50 * acknowledged }]);
    }
    expect(acknowledged).toBeGreaterThan(0);
    // The log could not be folded into the file for want of room: it goes along.
    const moved = join(folder, "..", "c.sqlite");
    for (const end of ["", "-wal"]) if (existsSync(path + end)) copyFileSync(path + end, moved + end);
    await using catalog = await SqliteCatalog.open({ path: moved });
    expect(await catalog.tables()).toMatchObject([{ files: 50 * acknowledged }]);
    expect(await catalog.snapshots()).toHaveLength(1 + acknowledged);
  });
});

describe("a lock of another process", () => {
  /** Another connection with the write lock. */
  function lock(path: string): SqliteDriver {
    const other = connect(path);
    onTestFinished(() => void other.close());
    other.exec("BEGIN IMMEDIATE");
    return other;
  }

  it("is waited for, without blocking the event loop", async () => {
    const path = join(tempFolder(), "c.sqlite");
    await using catalog = await SqliteCatalog.open({ path });
    const other = lock(path);
    let done = false;
    const commit = catalog.commit(draft(create("t1", "events"))).then((result) => {
      done = true;
      return result;
    });
    // Timers and reads go on while the commit waits.
    for (let i = 0; i < 20; i++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(await catalog.head()).toMatchObject({ snapshot: 0 });
    }
    expect(done).toBe(false);
    other.exec("ROLLBACK");
    expect(await commit).toMatchObject({ status: "committed" });
  });

  it("that does not end is catalog_busy, and nothing half applied", async () => {
    const path = join(tempFolder(), "c.sqlite");
    await using catalog = await SqliteCatalog.open({ path, busyTimeoutMs: 100 });
    const other = lock(path);
    const commits = Array.from({ length: 3 }, (_, i) => catalog.commit(draft(create(`t${i}`, `n${i}`))));
    for (const result of await Promise.allSettled(commits)) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "catalog_busy", retryable: true } });
    }
    other.exec("ROLLBACK");
    expect(await catalog.head()).toMatchObject({ snapshot: 0 });
    expect(await catalog.commit(draft(create("t1", "events")))).toMatchObject({ snapshot: 1 });
  });

  it("that holds a read does not hinder commits, and keeps its own snapshot (D40)", async () => {
    const path = join(tempFolder(), "c.sqlite");
    await using catalog = await SqliteCatalog.open({ path, busyTimeoutMs: 0 });
    await catalog.commit(draft(create("t1", "events")));
    const reader = connect(path);
    onTestFinished(() => void reader.close());
    reader.exec("BEGIN");
    const count = (): unknown => reader.get("SELECT count(*) AS n FROM entries");
    expect(count()).toEqual({ n: 1 });
    for (let i = 0; i < 20; i++) await catalog.commit(draft(append("t1", `b-${i}`, [`k${i}`])));
    expect(count()).toEqual({ n: 1 });
    reader.exec("COMMIT");
    expect(count()).toEqual({ n: 21 });
  });
});

describe("a file", () => {
  it("that is not SQLite is refused and left alone", async () => {
    const path = join(tempFolder(), "c.sqlite");
    const text = "id,name\n".repeat(200);
    writeFileSync(path, text);
    for (const mode of ["create", "open", "read"] as const) {
      await expect(SqliteCatalog.open({ path, mode })).rejects.toMatchObject({ code: "not_a_catalog" });
    }
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("of another program is refused and left alone", async () => {
    const path = join(tempFolder(), "c.sqlite");
    const other = connect(path);
    other.exec("CREATE TABLE notes (text)");
    other.close();
    const before = readFileSync(path);
    for (const mode of ["create", "open", "read"] as const) {
      await expect(SqliteCatalog.open({ path, mode })).rejects.toMatchObject({ code: "not_a_catalog" });
    }
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("that is a folder is refused", async () => {
    const path = tempFolder();
    await expect(SqliteCatalog.open({ path })).rejects.toMatchObject({ code: "not_a_catalog" });
  });

  it("that is empty is no catalog yet", async () => {
    const path = join(tempFolder(), "c.sqlite");
    writeFileSync(path, "");
    await expect(SqliteCatalog.open({ path, mode: "open" })).rejects.toMatchObject({ code: "catalog_not_found" });
    await expect(SqliteCatalog.open({ path, mode: "read" })).rejects.toMatchObject({ code: "catalog_not_found" });
    await using catalog = await SqliteCatalog.open({ path });
    expect(await catalog.head()).toMatchObject({ snapshot: 0 });
  });

  it("of a newer version is refused, naming both versions", async () => {
    const path = join(tempFolder(), "c.sqlite");
    await (await SqliteCatalog.open({ path }))[Symbol.asyncDispose]();
    const newer = connect(path);
    const { user_version: known } = newer.get<{ user_version: number }>("PRAGMA user_version")!;
    newer.exec(`PRAGMA user_version = ${known + 1}`);
    newer.close();
    for (const mode of ["create", "open", "read"] as const) {
      const opening = SqliteCatalog.open({ path, mode });
      await expect(opening).rejects.toMatchObject({ code: "catalog_too_new" });
      await expect(opening).rejects.toThrow(
        `has version ${known + 1}, this version of Eider knows up to ${known}: update Eider`,
      );
    }
  });

  it("with a damaged page is CorruptionError", async () => {
    const path = join(tempFolder(), "c.sqlite");
    {
      await using catalog = await SqliteCatalog.open({ path });
      await catalog.commit(draft(create("t1", "events"), append("t1", "b", ["k1"])));
    }
    const bytes = readFileSync(path);
    bytes.fill(0xff, 4096); // all pages but the first
    writeFileSync(path, bytes);
    await expect(SqliteCatalog.open({ path })).rejects.toThrow(CorruptionError);
  });

  it("with damaged JSON is CorruptionError", async () => {
    const path = join(tempFolder(), "c.sqlite");
    await using catalog = await SqliteCatalog.open({ path });
    await catalog.commit(draft(create("t1", "events")));
    const other = connect(path);
    onTestFinished(() => void other.close());
    other.exec('UPDATE schema_versions SET schema = \'{"fields":[{"id":1}]}\'');
    await expect(catalog.tables()).rejects.toThrow(CorruptionError);
    await expect(catalog.tables()).rejects.toMatchObject({ code: "catalog_corrupt" });
  });

  it("that is written while a copy of it is taken is copied again", async () => {
    const path = join(tempFolder(), "c.sqlite");
    const commit = async (table: string): Promise<Buffer> => {
      await using writer = await SqliteCatalog.open({ path });
      await writer.commit(draft(create(table, table)));
      await writer[Symbol.asyncDispose]();
      return readFileSync(path);
    };
    const older = await commit("t1");
    let newer = older;
    let copies = 0;
    await using catalog = await SqliteCatalog.open({
      path,
      mode: "read",
      driver: (file, options) => {
        // As in a folder that cannot be written.
        if (!options.copy) throw sqliteError("SQLITE_CANTOPEN");
        if (++copies !== 2) return openSqlite(file, options);
        writeFileSync(path, Buffer.concat([newer.subarray(0, 8192), older.subarray(8192)]));
        const driver = openSqlite(file, options);
        writeFileSync(path, newer);
        return driver;
      },
    });
    expect(await catalog.tables()).toHaveLength(1);
    newer = await commit("t2");
    expect((await catalog.tables()).map(({ name }) => name)).toEqual(["t1", "t2"]);
    expect(copies).toBe(3);
  });

  it("that was deleted or replaced while open takes no more commits and answers nothing", async () => {
    const folder = tempFolder();
    const path = join(folder, "c.sqlite");
    await using catalog = await SqliteCatalog.open({ path });
    await catalog.commit(draft(create("t1", "events")));
    for (const end of ["", "-wal", "-shm"]) renameSync(path + end, `${join(folder, "away")}${end}`);
    await expect(catalog.commit(draft(append("t1", "b", [])))).rejects.toMatchObject({ code: "catalog_replaced" });
    await expect(catalog.tables()).rejects.toMatchObject({ code: "catalog_replaced" });
    await (await SqliteCatalog.open({ path }))[Symbol.asyncDispose]();
    await expect(catalog.commit(draft(append("t1", "b", [])))).rejects.toMatchObject({ code: "catalog_replaced" });
    rmSync(path);
  });

  it("in another mode takes no commits of this code", async () => {
    const path = join(tempFolder(), "c.sqlite");
    await using catalog = await SqliteCatalog.open({ path });
    const other = connect(path);
    onTestFinished(() => void other.close());
    other.exec("UPDATE meta SET mode = 'shared'");
    await expect(catalog.commit(draft(create("t1", "events")))).rejects.toMatchObject({ code: "wrong_mode" });
    expect(await catalog.head()).toMatchObject({ snapshot: 0 });
  });
});
