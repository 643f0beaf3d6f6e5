/** Checkpoints of simulated hosts: the tables as JSON, instead of a file that SQLite and zlib would have to make. */

import { createHash } from "node:crypto";
import type { SqliteCatalog, SqliteValue } from "@eider/catalog";
import { type CarriedTable, carriedTables } from "../../../catalog/src/sqlite-rows.js";
import type { IndexCopies } from "../../src/shared/checkpoints.js";
import type { SimDisk } from "./sim-disk.js";
import type { SimProcess } from "./sim-process.js";

type JsonValue = string | number | null | { readonly hex: string };

export function simCopies(disk: SimDisk, index: SqliteCatalog, process: SimProcess): IndexCopies {
  return {
    async write() {
      await process.stop("checkpoint copy");
      const tables = carriedTables(disk.real).map(({ rows, ...table }) => ({
        ...table,
        rows: [...rows].map((row) => row.map(toJson)),
      }));
      const body = Buffer.from(JSON.stringify(tables));
      const last = disk.real.get<{ n: number | null }>("SELECT max(n) AS n FROM entries")?.n;
      return {
        snapshot: last ?? 0,
        sha256: createHash("sha256").update(body).digest("hex"),
        bytes: body.length,
        body,
        async [Symbol.asyncDispose]() {},
      };
    },
    async load(body) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of body) chunks.push(chunk);
      const json = JSON.parse(Buffer.concat(chunks).toString()) as (CarriedTable & { rows: JsonValue[][] })[];
      const tables = json.map((table) => ({ ...table, rows: table.rows.map((row) => row.map(fromJson)) }));
      const { columns, rows } = tables.find(({ name }) => name === "entries")!;
      const [n, id] = [columns.indexOf("n"), columns.indexOf("id")];
      await index.applyCheckpoint({
        entryId: (number) => rows.find((row) => row[n] === number)?.[id] as string | undefined,
        tables: () => tables,
      });
    },
  };
}

function toJson(value: SqliteValue): JsonValue {
  return value instanceof Uint8Array ? { hex: Buffer.from(value).toString("hex") } : value;
}

function fromJson(value: JsonValue): SqliteValue {
  return typeof value === "object" && value !== null ? Buffer.from(value.hex, "hex") : value;
}
