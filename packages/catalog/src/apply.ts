/**
 * What an entry changes, as plain data: pure, so that every catalog that applies an entry ends in the same state.
 * The entry must have passed `check` on the same state.
 */

import type { Reject, Schema } from "@eider/core";
import type { DataFile, SourceRange } from "./catalog.js";
import type { CatalogState, Totals } from "./check.js";
import type { Entry } from "./entry.js";

/** In the order in which they are to be made. Each belongs to snapshot `entry.n` of the `entry` change, which is first. */
export type Change =
  | { readonly change: "entry"; readonly entry: Entry }
  | {
      readonly change: "create";
      readonly table: string;
      readonly name: string;
      readonly folder: string;
      readonly partitionBy: readonly string[];
      readonly orderBy: readonly string[];
    }
  | {
      readonly change: "version";
      readonly table: string;
      readonly version: number;
      readonly schema: Schema;
      readonly lastFieldId: number;
    }
  /** Ends the table, and with it its files; its receipts stay. */
  | { readonly change: "drop"; readonly table: string }
  | {
      readonly change: "batch";
      readonly table: string;
      readonly batch: string;
      readonly hash: string;
      readonly rows: number;
      readonly time: number;
      /** The batch takes the place of its source's last one. */
      readonly range?: SourceRange;
    }
  | { readonly change: "file"; readonly table: string; readonly batch: string; readonly file: DataFile }
  /** `ordinal` counts the rejects of the entry from 0. */
  | {
      readonly change: "reject";
      readonly table: string;
      readonly batch: string;
      readonly ordinal: number;
      readonly reject: Reject;
    }
  /** The table's files are again those of snapshot `to`. */
  | { readonly change: "rollback"; readonly table: string; readonly to: number }
  /** Without a position the cursor ends. */
  | { readonly change: "cursor"; readonly name: string; readonly position: string | undefined }
  /** Without a snapshot the name is given up. */
  | { readonly change: "tag"; readonly name: string; readonly snapshot: number | undefined }
  /** Of a table, from this snapshot on. */
  | { readonly change: "totals"; readonly table: string; readonly totals: Totals };

/** The changes of a valid entry. */
export function apply(state: CatalogState, entry: Entry): Change[] {
  const changes: Change[] = [{ change: "entry", entry }];
  const totals = new Map<string, Totals>();
  let rejects = 0;
  for (const operation of entry.operations) {
    switch (operation.op) {
      case "schema": {
        const { table, version, schema, lastFieldId, create } = operation;
        if (create) {
          changes.push({ change: "create", table, ...create });
          totals.set(table, { rows: 0, files: 0, bytes: 0 });
        }
        changes.push({ change: "version", table, version, schema, lastFieldId });
        break;
      }
      case "append": {
        const { table, batch, hash, rows, files, range } = operation;
        changes.push({ change: "batch", table, batch, hash, rows, time: entry.time, ...(range && { range }) });
        for (const file of files) changes.push({ change: "file", table, batch, file });
        for (const reject of operation.rejects) {
          changes.push({ change: "reject", table, batch, ordinal: rejects++, reject });
        }
        const before = totals.get(table) ?? state.totals(table);
        totals.set(table, {
          rows: before.rows + rows,
          files: before.files + files.length,
          bytes: files.reduce((sum, file) => sum + file.bytes, before.bytes),
        });
        break;
      }
      case "drop":
        changes.push({ change: "drop", table: operation.table });
        break;
      case "rollback": {
        const { table, to } = operation;
        const past = state.past(table, to);
        if (!past) throw new Error(`the table ${table} was not there at snapshot ${to}`);
        changes.push({ change: "rollback", table, to });
        totals.set(table, past.totals);
        break;
      }
      case "cursor":
        changes.push({ change: "cursor", name: operation.name, position: operation.to });
        break;
      case "tag":
        changes.push({ change: "tag", name: operation.name, snapshot: operation.snapshot });
        break;
      case "floor":
        break; // in the entry itself
    }
  }
  for (const [table, total] of totals) changes.push({ change: "totals", table, totals: total });
  return changes;
}

/** The floor in force after the operations. */
export function floorAfter(before: number, operations: Entry["operations"]): number {
  return operations.reduce((floor, operation) => (operation.op === "floor" ? operation.floor : floor), before);
}
