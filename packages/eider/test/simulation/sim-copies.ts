/** Checkpoints of simulated hosts: the tables as JSON, instead of a file that SQLite and zlib would have to make. */

import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { applyCheckpointFile, type SqliteCatalog, type SqliteValue } from "@eider/catalog";
import { CatalogError } from "@eider/core";
import { type CarriedTable, carriedTables } from "../../../catalog/src/sqlite-rows.js";
import type { IndexCopies } from "../../src/shared/checkpoints.js";
import type { SimDisk } from "./sim-disk.js";
import type { SimProcess } from "./sim-process.js";
import type { Version } from "./sim-store.js";

/** The first byte of what gzip makes. */
const GZIP = 0x1f;

type JsonValue = string | number | null | { readonly hex: string };

/** Tables, and the version that has written them. */
interface Copy {
  readonly version: Version;
  readonly tables: readonly (Omit<CarriedTable, "rows"> & { readonly rows: readonly JsonValue[][] })[];
}

export function simCopies(disk: SimDisk, index: SqliteCatalog, process: SimProcess, version: Version): IndexCopies {
  return {
    async write() {
      await process.stop("checkpoint copy");
      const tables = carriedTables(disk.real).map(({ rows, ...table }) => ({
        ...table,
        rows: [...rows].map((row) => row.map(toJson)),
      }));
      const body = Buffer.from(JSON.stringify({ version, tables } satisfies Copy));
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
      const bytes = Buffer.concat(chunks);
      if (bytes[0] === GZIP) return loadFile(index, gunzipSync(bytes));
      const copy = JSON.parse(bytes.toString()) as Copy;
      // As an index whose tables are a newer version's is refused when it is opened.
      if (copy.version === "newer" && version === "this") throw new CatalogError("catalog_too_new", "update Eider");
      const tables = copy.tables.map((table) => ({ ...table, rows: table.rows.map((row) => row.map(fromJson)) }));
      const { columns, rows } = tables.find(({ name }) => name === "entries")!;
      const [n, id] = [columns.indexOf("n"), columns.indexOf("id")];
      await index.applyCheckpoint({
        entryId: (number) => rows.find((row) => row[n] === number)?.[id] as string | undefined,
        tables: () => tables,
      });
    },
  };
}

/** Those of lakes that were copied are what they are everywhere. */
async function loadFile(index: SqliteCatalog, bytes: Uint8Array): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "eider-simulation-"));
  try {
    const path = join(folder, "copy.sqlite");
    writeFileSync(path, bytes);
    await applyCheckpointFile(index, path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function toJson(value: SqliteValue): JsonValue {
  return value instanceof Uint8Array ? { hex: Buffer.from(value).toString("hex") } : value;
}

function fromJson(value: JsonValue): SqliteValue {
  return typeof value === "object" && value !== null ? Buffer.from(value.hex, "hex") : value;
}
