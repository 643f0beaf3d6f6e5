/** What the catalog asks of a binding; every one that this Node.js has gives the same. */

import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openBetterSqlite } from "../src/better-sqlite.js";
import { nodeSqlite } from "../src/node-sqlite.js";
import type { DriverOptions, OpenDriver, SqliteDriver } from "../src/sqlite-driver.js";
import { tempFolder } from "./fixtures.js";

const WRITE: DriverOptions = { readonly: false, create: true, blockMs: 0, copy: false };
const READ: DriverOptions = { readonly: true, create: false, blockMs: 0, copy: false };

const inNode = nodeSqlite();
// better-sqlite3 is safe where Node.js has no SQLite that is ready, and only there.
const bindings: [string, OpenDriver][] = [inNode ? ["node:sqlite", inNode] : ["better-sqlite3", openBetterSqlite]];

it("is Node's own from version 24 on", () => {
  expect(inNode !== undefined).toBe(Number.parseInt(process.versions.node, 10) >= 24);
});

describe.each(bindings)("%s", (_, openDriver) => {
  let path = "";
  beforeEach(() => {
    path = join(tempFolder(), "a b%41?#.sqlite");
  });

  function open(options: DriverOptions, file: string | null = path): SqliteDriver {
    const driver = openDriver(file ?? undefined, options);
    onTestFinished(() => driver.close());
    return driver;
  }

  function made(): SqliteDriver {
    const driver = open(WRITE);
    driver.exec("CREATE TABLE t (i INTEGER, s TEXT, b BLOB) STRICT");
    return driver;
  }

  const codeOf = (work: () => unknown): unknown => {
    try {
      work();
    } catch (error) {
      return (error as { code: unknown }).code;
    }
    return "no error";
  };

  it("keeps values, gives rows as plain objects and counts changes", () => {
    const driver = made();
    const bytes = new Uint8Array([0, 255, 7]);
    expect(driver.run("INSERT INTO t VALUES (?, ?, ?), (NULL, '', x'')", Number.MAX_SAFE_INTEGER, "é\0🦆", bytes)).toBe(
      2,
    );
    const rows = driver.all<{ i: number; s: string; b: Uint8Array }>("SELECT * FROM t ORDER BY i DESC");
    expect(rows.map(({ i, s }) => [i, s])).toEqual([
      [Number.MAX_SAFE_INTEGER, "é\0🦆"],
      [null, ""],
    ]);
    expect([...rows[0]!.b]).toEqual([...bytes]);
    expect(Object.getPrototypeOf(rows[0])).toBe(Object.prototype);
    expect(driver.get("SELECT 1 AS one")).toStrictEqual({ one: 1 });
    expect(driver.get("SELECT 1 WHERE false")).toBeUndefined();
    expect(driver.run("DELETE FROM t WHERE i IS NULL")).toBe(1);
    expect(driver.all("SELECT i FROM t LIMIT ?", 0)).toEqual([]);
  });

  it("gives errors SQLite's code", () => {
    const driver = made();
    driver.exec("CREATE UNIQUE INDEX u ON t (i)");
    driver.run("INSERT INTO t (i) VALUES (?)", 1);
    expect(codeOf(() => driver.run("INSERT INTO t (i) VALUES (?)", 1))).toMatch(/^SQLITE_CONSTRAINT/);
    expect(codeOf(() => driver.exec("SELEC"))).toBe("SQLITE_ERROR");
    expect(codeOf(() => driver.all("SELECT * FROM nowhere"))).toBe("SQLITE_ERROR");
    const other = open(WRITE);
    other.exec("BEGIN IMMEDIATE");
    expect(codeOf(() => driver.exec("BEGIN IMMEDIATE"))).toMatch(/^SQLITE_BUSY/);
    other.exec("ROLLBACK");
    expect(codeOf(() => open(READ).exec("DELETE FROM t"))).toMatch(/^SQLITE_READONLY/);
  });

  it("makes a file only if told", () => {
    expect(codeOf(() => open({ ...WRITE, create: false }))).toMatch(/^SQLITE_CANTOPEN/);
    expect(codeOf(() => open(READ))).toMatch(/^SQLITE_CANTOPEN/);
    made().close();
    expect(open({ ...WRITE, create: false }).all("SELECT * FROM t")).toEqual([]);
  });

  it("says that a file is not SQLite's", () => {
    writeFileSync(path, "not a database, and long enough to be told from an empty one".repeat(100));
    expect(codeOf(() => open(WRITE).get("PRAGMA user_version"))).toBe("SQLITE_NOTADB");
    expect(codeOf(() => open({ ...READ, copy: true }).get("PRAGMA user_version"))).toBe("SQLITE_NOTADB");
  });

  it("has a database in memory without a path", () => {
    const [one, two] = [open(WRITE, null), open(WRITE, null)];
    one.exec("CREATE TABLE t (i)");
    expect(two.all("SELECT name FROM sqlite_schema")).toEqual([]);
  });

  it("reads a copy without touching the file or what is beside it", () => {
    const writer = made();
    writer.exec("PRAGMA journal_mode = WAL");
    writer.run("INSERT INTO t (i) VALUES (?)", 7);
    writer.close();
    const before = readFileSync(path);
    chmodSync(path, 0o444);
    const copy = open({ ...READ, copy: true });
    expect(copy.all("SELECT i FROM t")).toEqual([{ i: 7 }]);
    expect(codeOf(() => copy.exec("DELETE FROM t"))).toMatch(/^SQLITE_READONLY/);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("reads a copy of an empty file as an empty database", () => {
    writeFileSync(path, "");
    expect(open({ ...READ, copy: true }).all("SELECT name FROM sqlite_schema")).toEqual([]);
  });

  it("rolls back what is open when it is closed, and is closed twice without harm", () => {
    const driver = made();
    driver.exec("BEGIN IMMEDIATE");
    driver.run("INSERT INTO t (i) VALUES (?)", 1);
    driver.close();
    driver.close();
    expect(open(READ).all("SELECT * FROM t")).toEqual([]);
  });
});
