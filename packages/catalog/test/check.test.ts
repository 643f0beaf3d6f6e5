import { describe, expect, it } from "vitest";
import { apply } from "../src/apply.js";
import type { Draft, Operation } from "../src/catalog.js";
import { check, type Verdict } from "../src/check.js";
import { append, create, dataFile, draft, hot, part, rearrange, SCHEMA, statistics } from "./fixtures.js";
import { MemoryState } from "./memory-state.js";

/** A state after these entries, one per list. */
function stateAfter(...entries: Operation[][]): MemoryState {
  const state = new MemoryState();
  for (const operations of entries) {
    const { n, id, floor } = state.head();
    expect(check(state, { operations })).toEqual({ status: "apply" });
    state.apply(
      apply(state, {
        lake: "l",
        n: n + 1,
        id: `e${n + 1}`,
        prev: id,
        writer: "w",
        host: "h",
        time: 1000 * (n + 1),
        floor: operations.reduce((f, op) => (op.op === "floor" ? op.floor : f), floor),
        meta: {},
        operations,
      }),
    );
  }
  return state;
}

const NO_ROWS = { rows: 0, files: 0, bytes: 0, hotBatches: 0, hotBytes: 0, hotSince: 0 };

/** What a verdict says, without its sentence. */
function shortly(verdict: Verdict): string {
  switch (verdict.status) {
    case "stale":
      return `stale ${verdict.reason}`;
    case "invalid":
    case "conflict":
      return `${verdict.status} ${verdict.code}`;
    default:
      return verdict.status;
  }
}

const evolve = (table: string, version: number, lastFieldId = 3): Operation => ({
  op: "schema",
  table,
  version,
  schema: { fields: [...SCHEMA.fields, { id: 3, name: "x", type: { kind: "float64" }, nullable: true }] },
  lastFieldId,
});

describe("check", () => {
  const lake = (): MemoryState =>
    stateAfter(
      [create("t1", "Events"), append("t1", "b-1", ["k1"])], // 1
      [append("t1", "b-2", ["k2"])], // 2
      [create("t2", "old"), append("t2", "x", ["k3"])], // 3
      [{ op: "drop", table: "t2" }], // 4
      [append("t1", "m-1", ["k4"]), append("t1", "m-2", [])], // 5
      [{ op: "floor", floor: 2 }], // 6
    );

  it.each<[string, string, Draft]>([
    ["new batch", "apply", draft(append("t1", "b-3", ["n"], { files: [dataFile("n", { base: 6 })] }))],
    ["batch without rows", "apply", draft(append("t1", "b-3", []))],
    ["same batch again", "duplicate", draft(append("t1", "b-1", ["other-key"]))],
    ["same batch, other content", "conflict batch_conflict", draft(append("t1", "b-1", ["n"], { hash: "rows:other" }))],
    ["same batch id, other table", "apply", draft(create("t3", "third"), append("t3", "b-1", []))],
    // The retry of an append is answered whatever else has changed since: dedupe comes first.
    ["duplicate, although the schema moved", "duplicate", draft(append("t1", "b-1", ["n"], { schemaVersion: 9 }))],
    ["duplicate, although below the floor", "duplicate", draft(append("t1", "b-2", ["n"]))],
    ["duplicate, although the table is gone", "duplicate", draft(append("t2", "x", ["n"]))],
    [
      "duplicate, although another snapshot was expected",
      "duplicate",
      { ...draft(append("t1", "b-2", [])), expectSnapshot: 1 },
    ],
    [
      "duplicate together with a schema",
      "duplicate",
      draft(evolve("t1", 2), append("t1", "b-1", [], { schemaVersion: 2 })),
    ],
    [
      "conflict, although the table is gone",
      "conflict batch_conflict",
      draft(append("t2", "x", ["n"], { hash: "rows:y" })),
    ],
    ["transaction again", "duplicate", draft(append("t1", "m-1", ["n"]), append("t1", "m-2", []))],
    ["half a transaction again", "duplicate", draft(append("t1", "m-2", []))],
    ["known and new", "conflict transaction_conflict", draft(append("t1", "m-1", ["n"]), append("t1", "m-3", []))],
    ["of two snapshots", "conflict transaction_conflict", draft(append("t1", "b-1", ["n"]), append("t1", "m-2", []))],
    [
      "known, and one with other content",
      "conflict batch_conflict",
      draft(append("t1", "b-1", []), append("t1", "b-2", [], { hash: "rows:z" })),
    ],

    ["expected snapshot", "apply", { ...draft(append("t1", "b-3", [])), expectSnapshot: 6 }],
    ["another expected snapshot", "stale snapshot", { ...draft(append("t1", "b-3", [])), expectSnapshot: 5 }],

    ["append to an unknown table", "stale table_missing", draft(append("t9", "b", []))],
    ["append to a dropped table", "stale table_missing", draft(append("t2", "b", []))],
    ["append for an older schema", "stale schema", draft(evolve("t1", 2), append("t1", "b", []))],
    ["append for the draft's own schema", "apply", draft(evolve("t1", 2), append("t1", "b", [], { schemaVersion: 2 }))],
    ["append for a newer schema", "stale schema", draft(append("t1", "b", [], { schemaVersion: 2 }))],
    ["append before its table is created", "stale table_missing", draft(append("t3", "b", []), create("t3", "third"))],

    ["name that exists", "stale table_exists", draft(create("t3", "Events"))],
    // Somebody else has created it meanwhile: only there can the batch be known.
    [
      "name that exists, with a batch that its table knows",
      "stale table_exists",
      draft(create("t3", "Events"), append("t3", "b-1", [])),
    ],
    [
      "name that exists, beside a known batch",
      "stale table_exists",
      draft(create("t3", "Events"), append("t1", "b-1", [])),
    ],
    ["name that differs by case", "stale table_exists", draft(create("t3", "eVENTS"))],
    ["name of a dropped table", "apply", draft(create("t3", "old"))],
    ["name dropped in the same draft", "apply", draft({ op: "drop", table: "t1" }, create("t3", "events"))],
    ["same name twice", "stale table_exists", draft(create("t3", "n"), create("t4", "N"))],
    ["table id that exists", "stale table_exists", draft(create("t1", "new"))],
    ["table id of a dropped table", "stale table_exists", draft(create("t2", "new"))],
    [
      "folder of a dropped table, other case",
      "stale table_exists",
      draft(create("t3", "n", { create: { name: "n", folder: "OLD-t2", partitionBy: [], orderBy: [] } })),
    ],

    ["next schema version", "apply", draft(evolve("t1", 2))],
    ["two schema versions", "apply", draft(evolve("t1", 2), evolve("t1", 3))],
    ["schema version that exists", "stale schema", draft(evolve("t1", 1))],
    ["schema version too far", "stale schema", draft(evolve("t1", 3))],
    ["schema of a dropped table", "stale table_missing", draft(evolve("t2", 2))],
    ["field ids that fall", "invalid bad_schema", draft(evolve("t1", 2, 1))],

    ["drop", "apply", draft({ op: "drop", table: "t1" })],
    ["drop twice", "stale table_missing", draft({ op: "drop", table: "t1" }, { op: "drop", table: "t1" })],
    ["drop of a dropped table", "stale table_missing", draft({ op: "drop", table: "t2" })],
    ["append after the drop", "stale table_missing", draft({ op: "drop", table: "t1" }, append("t1", "b", []))],

    ["staged at the floor", "apply", draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 2 })] }))],
    ["staged below the floor", "stale floor", draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 1 })] }))],
    [
      "staged below the draft's own floor",
      "stale floor",
      draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 2 })] }), { op: "floor", floor: 3 }),
    ],
    [
      "staged in the future",
      "invalid bad_file",
      draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 7 })] })),
    ],
    ["floor raised to the head", "apply", draft({ op: "floor", floor: 6 })],
    ["floor as it is", "stale floor", draft({ op: "floor", floor: 2 })],
    ["floor beyond the head", "invalid bad_floor", draft({ op: "floor", floor: 7 })],

    ["key of a live file", "invalid bad_file", draft(append("t1", "b", ["k1"]))],
    ["key of a dropped table's file", "invalid bad_file", draft(append("t1", "b", ["k3"]))],
    [
      "same key twice",
      "invalid bad_file",
      draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 6 })] }), append("t1", "c", ["n"])),
    ],
    ["rows that do not add up", "invalid bad_batch", draft(append("t1", "b", [], { rows: 1 }))],
    [
      "partition of an unpartitioned table",
      "invalid bad_file",
      draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 6, partition: ["x"] })] })),
    ],
    [
      "file of an unknown schema version",
      "invalid bad_file",
      draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 6, schemaVersion: 2 })] })),
    ],
    [
      "statistics of no field",
      "invalid bad_file",
      draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 6, columns: [statistics(3)] })] })),
    ],
    [
      "bound of another type",
      "invalid bad_file",
      draft(append("t1", "b", ["n"], { files: [dataFile("n", { base: 6, columns: [statistics(1, { min: 1.5 })] })] })),
    ],
  ])("%s: %s", (_, expected, input) => {
    expect(shortly(check(lake(), input))).toBe(expected);
  });

  const followed = (): MemoryState =>
    stateAfter(
      [create("t1", "Events"), append("t1", "b-1", ["k1"])], // 1
      [part("t1", "s", 5, 7), move("c", "0", "1")], // 2
      [evolve("t1", 2)], // 3
      [part("t1", "s", 8, 8, { schemaVersion: 2 }), move("c", "1", "2.1"), move("d", "0", "2")], // 4
      [create("t2", "other"), { op: "tag", name: "v", snapshot: 2 }, { op: "cursor", name: "d", from: "2" }], // 5
    );
  const move = (name: string, from: string, to: string): Operation => ({ op: "cursor", name, from, to });
  const back = (table: string, to: number): Operation => ({ op: "rollback", table, to });
  const before = (version: number): Operation => ({
    op: "schema",
    table: "t1",
    version,
    schema: SCHEMA,
    lastFieldId: 3,
  });
  const next = { schemaVersion: 2 };

  it.each<[string, string, Draft]>([
    ["next part of a source", "apply", draft(part("t1", "s", 9, 12, next))],
    ["two parts", "apply", draft(part("t1", "s", 9, 9, next), part("t1", "s", 10, 12, next))],
    ["first part of a source", "apply", draft(part("t1", "new", 100, 120, next))],
    ["source of another table", "apply", draft(part("t2", "s", 1))],
    ["last part again", "duplicate", draft(part("t1", "s", 8))],
    ["last part again, other content", "conflict batch_conflict", draft(part("t1", "s", 8, 8, { hash: "rows:x" }))],
    ["earlier part again", "duplicate", draft(part("t1", "s", 5, 7))],
    ["earlier part, cut otherwise", "duplicate", draft(part("t1", "s", 3, 6, { hash: "rows:x" }))],
    ["earlier and last part again", "duplicate", draft(part("t1", "s", 5, 7), part("t1", "s", 8))],
    ["known and new part", "conflict transaction_conflict", draft(part("t1", "s", 8), part("t1", "s", 9, 9, next))],
    ["part that begins before the mark", "conflict sequence_overlap", draft(part("t1", "s", 8, 9, next))],
    ["part too far", "stale sequence", draft(part("t1", "s", 10, 12, next))],
    ["parts in the wrong order", "stale sequence", draft(part("t1", "s", 10, 10, next), part("t1", "s", 9, 9, next))],
    ["plain batch of a part's name", "conflict batch_conflict", draft(append("t1", "s#8", [], { hash: "rows:x" }))],

    ["cursor from where it is", "apply", draft(move("c", "2.1", "5"))],
    ["new cursor", "apply", draft(move("e", "0", "5"))],
    ["cursor that ended", "apply", draft(move("d", "0", "5"))],
    ["cursor moved twice", "apply", draft(move("c", "2.1", "3"), move("c", "3", "5"))],
    ["cursor from where it was", "stale cursor", draft(move("c", "1", "5"))],
    ["new cursor that should exist", "stale cursor", draft(move("e", "1", "5"))],
    ["cursor into the future", "invalid bad_position", draft(move("c", "2.1", "6"))],
    // A consumer that repeats its append is answered, though its cursor has moved with it: dedupe comes first.
    ["known batch with its cursor", "duplicate", draft(part("t1", "s", 8), move("c", "1", "2.1"))],
    ["new batch with a cursor that moved", "stale cursor", draft(append("t1", "x", [], next), move("c", "1", "2.1"))],
    ["cursor before the schema", "stale cursor", draft(append("t1", "x", []), move("c", "1", "2.1"))],

    [
      "cursor that moved, with a table that exists",
      "stale table_exists",
      draft(create("t3", "other"), append("t3", "x", []), move("c", "1", "2.1")),
    ],
    ["rollback with its schema", "apply", draft(before(3), back("t1", 2))],
    ["rollback with the schema of now", "apply", draft(back("t1", 3))],
    ["rollback without its schema", "stale schema", draft(back("t1", 2))],
    ["rollback to before the table", "invalid bad_rollback", draft(back("t2", 4))],
    ["rollback of no table", "stale table_missing", draft(back("t9", 4))],
    ["rollback of a dropped table", "stale table_missing", draft({ op: "drop", table: "t2" }, back("t2", 5))],

    ["tag", "apply", draft({ op: "tag", name: "w", snapshot: 5 })],
    ["tag that moves", "apply", draft({ op: "tag", name: "v", snapshot: 5 })],
    ["tag that ends", "apply", draft({ op: "tag", name: "v" })],
    ["tag of the future", "invalid bad_tag", draft({ op: "tag", name: "w", snapshot: 6 })],
  ])("followed lake, %s: %s", (_, expected, input) => {
    expect(shortly(check(followed(), input))).toBe(expected);
  });

  it("rows that came after a widening's look at the values make it stale", () => {
    const widen = (valuesOf: number): Draft => ({
      operations: [{ ...(evolve("t1", 2) as Extract<Operation, { op: "schema" }>), valuesOf }],
    });
    const state = stateAfter([create("t1", "Events"), append("t1", "b-1", ["k1"])], [append("t1", "b-2", ["k2"])]);
    expect(shortly(check(state, widen(1)))).toBe("stale schema");
    expect(shortly(check(state, widen(2)))).toBe("apply");
    const made = { operations: [create("t1", "Events"), append("t1", "b-1", ["k1"]), ...widen(0).operations] };
    expect(shortly(check(new MemoryState(), made))).toBe("apply");
  });

  it("says which batch, table, snapshot and hashes conflict", () => {
    const hash = `rows:${"9".repeat(64)}`;
    expect(check(lake(), draft(append("t1", "b-2", [], { hash })))).toMatchObject({
      status: "conflict",
      subject: "b-2",
      message:
        'the batch "b-2" of table "Events" was committed in snapshot 2 with other content ' +
        "(rows:b-2, now rows:99999999…): choose another batch id",
    });
  });
});

describe("apply", () => {
  it("turns an entry into changes in order, with running totals", () => {
    const state = stateAfter([create("t1", "events"), append("t1", "b-1", ["k1"])]);
    const entry = {
      lake: "l",
      n: 2,
      id: "e2",
      prev: "e1",
      writer: "w",
      host: "h",
      time: 5,
      floor: 1,
      meta: {},
      operations: [
        append("t1", "b-2", ["k2", "k3"], { rejects: [{ line: 4, code: "c", reason: "r", raw: "x" }] }),
        append("t1", "b-3", []),
        { op: "drop", table: "t1" },
        { op: "floor", floor: 1 },
      ] satisfies Operation[],
    };
    expect(apply(state, entry)).toEqual([
      { change: "entry", entry },
      { change: "batch", table: "t1", batch: "b-2", hash: "rows:b-2", rows: 2, rejected: 1, time: 5 },
      { change: "file", table: "t1", batch: "b-2", file: dataFile("k2") },
      { change: "file", table: "t1", batch: "b-2", file: dataFile("k3") },
      {
        change: "reject",
        table: "t1",
        batch: "b-2",
        ordinal: 0,
        reject: { line: 4, code: "c", reason: "r", raw: "x" },
      },
      { change: "batch", table: "t1", batch: "b-3", hash: "rows:b-3", rows: 0, rejected: 0, time: 5 },
      { change: "drop", table: "t1" },
      { change: "totals", table: "t1", totals: { ...NO_ROWS, rows: 3, files: 3, bytes: 300 } },
    ]);
  });

  it("starts a created table from nothing", () => {
    const changes = apply(new MemoryState(), {
      lake: "l",
      n: 1,
      id: "e1",
      prev: "",
      writer: "w",
      host: "h",
      time: 1,
      floor: 0,
      meta: {},
      operations: [create("t1", "events")],
    });
    expect(changes.slice(1)).toEqual([
      { change: "create", table: "t1", name: "events", folder: "events-t1", partitionBy: [], orderBy: [] },
      { change: "version", table: "t1", version: 1, schema: SCHEMA, lastFieldId: 2 },
      { change: "totals", table: "t1", totals: NO_ROWS },
    ]);
  });
});

describe("hot batches", () => {
  const lake = (): MemoryState =>
    stateAfter(
      [create("t1", "events"), append("t1", "cold", ["k1"]), create("t2", "other"), hot("t2", "h-1", 5)], // 1
      [hot("t1", "h-1", 2)], // 2
      [hot("t1", "h-2", 3)], // 3
      [rearrange("t1", { removeHot: ["h-1"], addFiles: [dataFile("f1", { rows: 2, base: 3 })] })], // 4
    );
  const file = (rows: number) => [dataFile("new", { rows, base: 4 })];

  it.each<[string, Operation, string]>([
    ["a hot batch", hot("t1", "h-3", 1), "apply"],
    ["a batch that is known, and folded since", hot("t1", "h-1", 2), "duplicate"],
    ["one with other content", hot("t1", "h-1", 2, { hash: "rows:other" }), "conflict batch_conflict"],
    ["one for another schema version", hot("t1", "h-3", 1, { schemaVersion: 2 }), "stale schema"],
    [
      "bounds of a field that is no integer",
      hot("t1", "h-3", 1, { hot: { data: Uint8Array.of(1), bounds: [{ fieldId: 2, min: 1n, max: 1n }] } }),
      "invalid bad_batch",
    ],
    [
      "bounds beyond 64 bits",
      hot("t1", "h-3", 1, { hot: { data: Uint8Array.of(1), bounds: [{ fieldId: 1, min: 1n, max: 2n ** 63n }] } }),
      "invalid bad_batch",
    ],
    ["a fold", rearrange("t1", { removeHot: ["h-2"], addFiles: file(3) }), "apply"],
    ["a compaction", rearrange("t1", { removeFiles: ["k1", "f1"], addFiles: file(3) }), "apply"],
    ["both", rearrange("t1", { removeHot: ["h-2"], removeFiles: ["k1"], addFiles: file(4) }), "apply"],
    ["a batch that is folded", rearrange("t1", { removeHot: ["h-1"], addFiles: file(2) }), "stale removed"],
    [
      "a batch that has its rows in files",
      rearrange("t1", { removeHot: ["cold"], addFiles: file(1) }),
      "stale removed",
    ],
    ["a batch of another table", rearrange("t2", { removeHot: ["h-2"], addFiles: file(3) }), "stale removed"],
    ["a batch twice", rearrange("t1", { removeHot: ["h-2", "h-2"], addFiles: file(6) }), "stale removed"],
    ["a file of another table", rearrange("t2", { removeFiles: ["k1"], addFiles: file(1) }), "stale removed"],
    ["a table that is not there", rearrange("t3", { removeHot: ["h-2"], addFiles: file(3) }), "stale table_missing"],
    ["rows that get lost", rearrange("t1", { removeHot: ["h-2"], addFiles: file(2) }), "invalid bad_rearrangement"],
    ["rows that appear", rearrange("t1", { removeHot: ["h-2"], addFiles: file(4) }), "invalid bad_rearrangement"],
    ["a used key", rearrange("t1", { removeFiles: ["k1"], addFiles: [dataFile("k1")] }), "invalid bad_file"],
  ])("%s", (_, operation, expected) => {
    expect(shortly(check(lake(), draft(operation)))).toBe(expected);
  });

  it("stay removed within a draft", () => {
    const again = draft(
      rearrange("t1", { removeHot: ["h-2"], addFiles: [dataFile("a", { rows: 3, base: 4 })] }),
      rearrange("t1", { removeHot: ["h-2"], addFiles: [dataFile("b", { rows: 3, base: 4 })] }),
    );
    expect(shortly(check(lake(), again))).toBe("stale removed");
  });

  it("cannot be folded below the floor", () => {
    const state = stateAfter(
      [create("t1", "events"), hot("t1", "h-1", 2)],
      [hot("t1", "h-2", 1)],
      [{ op: "floor", floor: 2 }],
    );
    const fold = rearrange("t1", { removeHot: ["h-1"], addFiles: [dataFile("f", { rows: 2, base: 1 })] });
    expect(shortly(check(state, draft(fold)))).toBe("stale floor");
  });

  it("count as rows, and their bytes apart from those of files", () => {
    expect(lake().totals("t1")).toEqual({
      rows: 6,
      files: 2,
      bytes: 200,
      hotBatches: 1,
      hotBytes: "rows of h-2".length,
      hotSince: 4,
    });
  });
});

describe("views", () => {
  const lake = (): MemoryState =>
    stateAfter(
      [create("t1", "Events"), { op: "view", name: "Daily", sql: "SELECT 1" }], // 1
      [{ op: "view", name: "gone", sql: "SELECT 1" }], // 2
      [{ op: "view", name: "gone", from: 2 }], // 3
    );

  it.each<[string, string, Draft]>([
    ["a new one", "apply", draft({ op: "view", name: "v", sql: "SELECT 1" })],
    ["a name that is free again", "apply", draft({ op: "view", name: "gone", sql: "SELECT 1" })],
    ["a name that exists, in other case", "stale view", draft({ op: "view", name: "daily", sql: "SELECT 1" })],
    ["another text", "apply", draft({ op: "view", name: "DAILY", from: 1, sql: "SELECT 2" })],
    ["another text of what was replaced", "stale view", draft({ op: "view", name: "Daily", from: 2, sql: "SELECT 2" })],
    ["another text of none", "stale view", draft({ op: "view", name: "gone", from: 2, sql: "SELECT 2" })],
    ["an end", "apply", draft({ op: "view", name: "daily", from: 1 })],
    ["an end twice", "stale view", draft({ op: "view", name: "v", from: 1 }, { op: "view", name: "v", from: 1 })],
    ["the name of a table", "invalid name_taken", draft({ op: "view", name: "events", sql: "SELECT 1" })],
    [
      "the name of a table that goes",
      "apply",
      draft({ op: "drop", table: "t1" }, { op: "view", name: "events", sql: "SELECT 1" }),
    ],
    ["a table of its name", "invalid name_taken", draft(create("t2", "DAILY"))],
    [
      "a table of its name, once it has ended",
      "apply",
      draft({ op: "view", name: "Daily", from: 1 }, create("t2", "daily")),
    ],
    [
      "a table of the name of the draft's own",
      "invalid name_taken",
      draft({ op: "view", name: "v", sql: "SELECT 1" }, create("t2", "v")),
    ],
    [
      "made and replaced at once",
      "apply",
      draft({ op: "view", name: "v", sql: "SELECT 1" }, { op: "view", name: "v", from: 4, sql: "SELECT 2" }),
    ],
  ])("%s", (_, expected, one) => {
    expect(shortly(check(lake(), one))).toBe(expected);
  });
});
