/**
 * What an entry changes, as plain data: pure, so that every catalog that applies an entry ends in the same state.
 * The entry must have passed `check` on the same state.
 */

import type { Reject, Schema } from "@eider/core";
import type { DataFile, HotRows, SourceRange } from "./catalog.js";
import type { Entry } from "./entry.js";
import type { CatalogState, Totals } from "./state.js";

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
      readonly rejected: number;
      readonly time: number;
      /** The batch takes the place of its source's last one. */
      readonly range?: SourceRange;
    }
  /** `batch` is undefined for files of a rearrangement. */
  | { readonly change: "file"; readonly table: string; readonly batch: string | undefined; readonly file: DataFile }
  | {
      readonly change: "hot";
      readonly table: string;
      readonly batch: string;
      readonly rows: number;
      readonly schemaVersion: number;
      readonly hot: HotRows;
    }
  | { readonly change: "removeFile"; readonly table: string; readonly key: string }
  | { readonly change: "removeHot"; readonly table: string; readonly batch: string }
  /** `ordinal` counts the rejects of the entry from 0. */
  | {
      readonly change: "reject";
      readonly table: string;
      readonly batch: string;
      readonly ordinal: number;
      readonly reject: Reject;
    }
  /** The batch is another try of these rejects. */
  | { readonly change: "replay"; readonly table: string; readonly batch: string; readonly rejects: readonly string[] }
  /** Their texts go; those of rejects that the table does not have, or that are gone already, are passed over. */
  | { readonly change: "purge"; readonly table: string; readonly rejects: readonly string[] }
  /** The table's files are again those of snapshot `to`. */
  | { readonly change: "rollback"; readonly table: string; readonly to: number }
  /** Without a position the cursor ends. */
  | { readonly change: "cursor"; readonly name: string; readonly position: string | undefined }
  /** Without a snapshot the name is given up. */
  | { readonly change: "tag"; readonly name: string; readonly snapshot: number | undefined }
  /** Ends the live view of this name, if there is one; with a text, one of that begins. */
  | { readonly change: "view"; readonly name: string; readonly sql: string | undefined }
  | { readonly change: "expire"; readonly before: number; readonly unusedSince: number }
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
          totals.set(table, { rows: 0, files: 0, bytes: 0, hotBatches: 0, hotBytes: 0, hotSince: 0 });
        }
        changes.push({ change: "version", table, version, schema, lastFieldId });
        break;
      }
      case "append": {
        const { table, batch, hash, rows, schemaVersion, files, hot, range, replays } = operation;
        const rejected = operation.rejects.length;
        changes.push({
          change: "batch",
          table,
          batch,
          hash,
          rows,
          rejected,
          time: entry.time,
          ...(range && { range }),
        });
        for (const file of files) changes.push({ change: "file", table, batch, file });
        if (hot) changes.push({ change: "hot", table, batch, rows, schemaVersion, hot });
        for (const reject of operation.rejects) {
          changes.push({ change: "reject", table, batch, ordinal: rejects++, reject });
        }
        if (replays) changes.push({ change: "replay", table, batch, rejects: replays });
        const before = totals.get(table) ?? state.totals(table);
        totals.set(table, {
          ...before,
          rows: before.rows + rows,
          files: before.files + files.length,
          bytes: files.reduce((sum, file) => sum + file.bytes, before.bytes),
          hotBatches: before.hotBatches + (hot ? 1 : 0),
          hotBytes: before.hotBytes + (hot?.data.length ?? 0),
        });
        break;
      }
      case "rearrange": {
        const { table, removeHot, removeFiles, addFiles } = operation;
        const before = totals.get(table) ?? state.totals(table);
        const gone = { files: 0, hot: 0 };
        for (const batch of removeHot) {
          changes.push({ change: "removeHot", table, batch });
          gone.hot += state.liveHot(table, batch)?.bytes ?? 0;
        }
        for (const key of removeFiles) {
          changes.push({ change: "removeFile", table, key });
          gone.files += state.liveFile(table, key)?.bytes ?? 0;
        }
        for (const file of addFiles) changes.push({ change: "file", table, batch: undefined, file });
        totals.set(table, {
          rows: before.rows,
          files: before.files - removeFiles.length + addFiles.length,
          bytes: addFiles.reduce((sum, file) => sum + file.bytes, before.bytes - gone.files),
          hotBatches: before.hotBatches - removeHot.length,
          hotBytes: before.hotBytes - gone.hot,
          hotSince: removeHot.length > 0 ? entry.n : before.hotSince,
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
        totals.set(table, { ...past.totals, hotSince: entry.n });
        break;
      }
      case "purge":
        changes.push({ change: "purge", table: operation.table, rejects: operation.rejects });
        break;
      case "cursor":
        changes.push({ change: "cursor", name: operation.name, position: operation.to });
        break;
      case "tag":
        changes.push({ change: "tag", name: operation.name, snapshot: operation.snapshot });
        break;
      case "view":
        changes.push({ change: "view", name: operation.name, sql: operation.sql });
        break;
      case "expire": {
        const { before, unusedSince } = operation;
        changes.push({ change: "expire", before, unusedSince });
        break;
      }
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
