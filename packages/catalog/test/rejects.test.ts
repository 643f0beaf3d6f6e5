/** Rejects: each is replayed once, and a text that was purged is nowhere any more. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Operation } from "../src/catalog.js";
import { decodeEntry, encodeEntry } from "../src/entry.js";
import { scrubEntry } from "../src/scrub.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { sharesEntry } from "../src/sqlite-commit.js";
import { append, connect, create, draft, hot, tempFolder } from "./fixtures.js";

const reject = (raw: string, line = 1) => ({ line, code: "bad", reason: "because", raw });

/** Snapshot 2 has the rejects 2-0 to 2-2 of two batches, snapshot 3 one of another table. */
async function withRejects(path = ":memory:"): Promise<SqliteCatalog> {
  const catalog = await SqliteCatalog.open({ path });
  await catalog.commit(draft(create("t1", "events"), create("t2", "other")));
  await catalog.commit(
    draft(
      append("t1", "a", ["k1"], { rejects: [reject("secret-0"), reject("secret-1", 2)] }),
      append("t1", "b", [], { rejects: [reject("secret-2")] }),
    ),
  );
  await catalog.commit(draft(append("t2", "c", [], { rejects: [reject("theirs")] })));
  return catalog;
}

const replay = (batch: string, replays: readonly string[], more: Partial<Extract<Operation, { op: "append" }>> = {}) =>
  append("t1", batch, [], { replays, hash: "rows:replay", rejects: replays.map((id) => reject(id)), ...more });

describe("a replay", () => {
  it("marks its rejects in the same commit, and is a duplicate when it comes again", async () => {
    await using catalog = await withRejects();
    const first = await catalog.commit(draft(hot("t1", "r", 2, { replays: ["2-0", "2-2"] })));
    expect(first).toMatchObject({ status: "committed", snapshot: 4, receipts: [{ rows: 2, rejected: 0 }] });
    expect(await catalog.commit(draft(hot("t1", "r", 2, { replays: ["2-0", "2-2"] })))).toMatchObject({
      status: "duplicate",
      receipts: [{ snapshot: 4 }],
    });
    const found = await catalog.rejects("t1");
    expect(found.map(({ id, replayedBy, replayedIn }) => [id, replayedBy, replayedIn])).toEqual([
      ["2-0", "r", 4],
      ["2-1", undefined, undefined],
      ["2-2", "r", 4],
    ]);
    expect((await catalog.rejects("t1", { open: true })).map(({ id }) => id)).toEqual(["2-1"]);
  });

  it("of a reject that another batch has taken is a conflict, also within one transaction", async () => {
    await using catalog = await withRejects();
    await catalog.commit(draft(replay("r", ["2-0"])));
    const conflict = { name: "BatchConflictError", code: "reject_replayed", subject: "2-0" };
    await expect(catalog.commit(draft(replay("s", ["2-1", "2-0"])))).rejects.toMatchObject(conflict);
    await expect(catalog.commit(draft(replay("s", ["2-1"]), replay("u", ["2-1"])))).rejects.toMatchObject({
      ...conflict,
      subject: "2-1",
    });
    // What was refused has marked nothing; the rows that a replay rejects can be replayed in their turn.
    expect((await catalog.rejects("t1", { open: true })).map(({ id }) => id)).toEqual(["2-1", "2-2", "4-0"]);
  });

  it.each<[string, Operation, string]>([
    ["a reject of another table", replay("r", ["3-0"]), "reject_not_found"],
    ["a reject that is not there", replay("r", ["2-3"]), "reject_not_found"],
    ["fewer rows than rejects", replay("r", ["2-0", "2-2"], { rejects: [reject("x")] }), "replay_rows"],
    ["more rows than rejects, in the catalog", hot("t1", "r", 2, { replays: ["2-0"] }), "replay_rows"],
    ["a purged reject, in the catalog", hot("t1", "r", 1, { replays: ["2-1"] }), "reject_purged"],
    ["a text that is no id", replay("r", ["2-01"]), "bad_draft"],
    ["a reject twice", replay("r", ["2-0", "2-0"]), "bad_draft"],
    ["nothing", replay("r", []), "bad_draft"],
  ])("of %s is refused", async (_, operation, code) => {
    await using catalog = await withRejects();
    await catalog.commit(draft({ op: "purge", table: "t1", rejects: ["2-1"] }));
    await expect(catalog.commit(draft(operation))).rejects.toMatchObject({ name: "InvalidInputError", code });
    expect(await catalog.head()).toMatchObject({ snapshot: 4 });
  });

  it("has an entry of its own: it changes what the others are checked on", () => {
    expect(sharesEntry(draft(append("t1", "b", [])))).toBe(true);
    expect(sharesEntry(draft(replay("r", ["2-0"])))).toBe(false);
  });
});

describe("pages of rejects", () => {
  it("go on behind an id, by batch, by id and by snapshot", async () => {
    await using catalog = await withRejects();
    await catalog.commit(draft(append("t1", "d", [], { rejects: [reject("new")] })));
    const ids = async (options: Parameters<typeof catalog.rejects>[1]): Promise<string[]> =>
      (await catalog.rejects("t1", options)).map(({ id }) => id);
    expect(await ids({ limit: 2 })).toEqual(["2-0", "2-1"]);
    expect(await ids({ limit: 2, after: "2-1" })).toEqual(["2-2", "4-0"]);
    expect(await ids({ batchId: "a", after: "2-0" })).toEqual(["2-1"]);
    expect(await ids({ before: 4 })).toEqual(["2-0", "2-1", "2-2"]);
    expect(await ids({ ids: ["4-0", "2-1", "3-0", "2-9"] })).toEqual(["2-1", "4-0"]);
    expect(await ids({ ids: [] })).toEqual([]);
  });
});

describe("a purge", () => {
  it("takes the texts out of the file, SQLite's log and free pages included, and nothing else", async () => {
    const path = join(tempFolder(), "catalog.sqlite");
    await using catalog = await withRejects(path);
    // Long enough to lie in pages of its own.
    await catalog.commit(draft(append("t1", "d", [], { rejects: [reject(`secret-3${"-secret".repeat(5000)}`)] })));
    const bytes = (): string => ["", "-wal"].map((end) => readFileSync(path + end, "latin1")).join();
    expect(bytes()).toContain("secret-0");
    await catalog.commit(draft({ op: "purge", table: "t1", rejects: ["2-0", "2-2", "4-0", "3-0"] }));
    await catalog.scrub();
    for (const text of ["secret-0", "secret-2", "secret-3", "-secret-secret"]) {
      expect(
        ["", "-wal"].filter((end) => readFileSync(path + end).includes(text)),
        text,
      ).toEqual([]);
    }
    expect(bytes()).toContain("secret-1");
    // Of another table: left alone.
    expect(await catalog.rejects("t2")).toMatchObject([{ raw: "theirs" }]);
    expect(await catalog.rejects("t1")).toMatchObject([
      { id: "2-0", line: 1, code: "bad", reason: "because", raw: "", purgedIn: 5 },
      { id: "2-1", raw: "secret-1" },
      { id: "2-2", raw: "", purgedIn: 5 },
      { id: "4-0", raw: "", purgedIn: 5 },
    ]);
    expect(await catalog.receipt("t1", "a")).toMatchObject({ rows: 1, rejected: 2 });
  });

  it("leaves entries that say the same but for the texts", async () => {
    const path = join(tempFolder(), "catalog.sqlite");
    await using catalog = await withRejects(path);
    await using _ = { [Symbol.asyncDispose]: async () => driver.close() };
    const driver = connect(path);
    const entry = (n: number) =>
      decodeEntry(driver.get<{ header: Uint8Array }>("SELECT header FROM entries WHERE n = ?", n)!.header);
    const before = entry(2);
    await catalog.commit(draft({ op: "purge", table: "t1", rejects: ["2-1"] }));
    const [first, second] = before.operations as [Extract<Operation, { op: "append" }>, Operation];
    const scrubbed = { ...first, rejects: [reject("secret-0"), reject("", 2)] };
    expect(entry(2)).toEqual({ ...before, operations: [scrubbed, second] });
    expect(entry(4).operations).toEqual([{ op: "purge", table: "t1", rejects: ["2-1"] }]);
  });

  it("of what is purged keeps the first snapshot", async () => {
    await using catalog = await withRejects();
    await catalog.commit(draft({ op: "purge", table: "t1", rejects: ["2-0"] }));
    await catalog.commit(draft({ op: "purge", table: "t1", rejects: ["2-0", "2-1"] }));
    expect((await catalog.rejects("t1")).map(({ purgedIn }) => purgedIn)).toEqual([4, 5, undefined]);
  });
});

describe("scrubEntry", () => {
  it("takes out the texts that are meant, and leaves blobs and all else", () => {
    const entry = {
      lake: "l",
      n: 7,
      id: "e7",
      prev: "e6",
      writer: "w",
      host: "h",
      time: 5,
      floor: 0,
      meta: { é: "\u2028" },
      operations: [
        hot("t1", "a", 1, { rejects: [reject("zero"), reject("one")] }),
        { op: "purge", table: "t1", rejects: ["2-0"] } as const,
        hot("t2", "b", 1, { rejects: [reject("two")] }),
      ],
    };
    const scrubbed = scrubEntry(encodeEntry(entry), new Set([1, 2]))!;
    const [first, purge, last] = entry.operations as [Operation, Operation, Operation];
    expect(decodeEntry(scrubbed)).toEqual({
      ...entry,
      operations: [{ ...first, rejects: [reject("zero"), reject("")] }, purge, { ...last, rejects: [reject("")] }],
    });
    expect(scrubEntry(scrubbed, new Set([1, 2]))).toBeUndefined();
    expect(scrubEntry(encodeEntry(entry), new Set([3]))).toBeUndefined();
  });
});
