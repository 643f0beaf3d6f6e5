/**
 * DuckDB's C API for Node, loaded on first use: a process that runs no SQL never loads the engine. The low-level
 * bindings, because the vectors of a result are wanted as buffers, not as objects.
 */

import { sep } from "node:path";
import { CatalogError } from "@eider/core";
import { quoteText } from "./sql-tokens.js";

export type Native = typeof import("@duckdb/node-bindings");
export type NativeDatabase = Awaited<ReturnType<Native["open"]>>;
export type NativeConnection = Awaited<ReturnType<Native["connect"]>>;
export type NativeStatement = Awaited<ReturnType<Native["prepare"]>>;
export type NativeResult = Awaited<ReturnType<Native["query"]>>;
export type NativeChunk = ReturnType<Native["result_get_chunk"]>;
export type NativeVector = ReturnType<Native["data_chunk_get_vector"]>;
export type NativeType = ReturnType<Native["create_logical_type"]>;
export type NativeValue = ReturnType<Native["create_null_value"]>;

/** @throws CatalogError `native_module_missing` */
export async function loadNative(): Promise<Native> {
  try {
    return (await import("@duckdb/node-bindings")).default;
  } catch (cause) {
    throw new CatalogError(
      "native_module_missing",
      `DuckDB's native module for ${process.platform}-${process.arch} cannot be loaded: install the dependencies on this ` +
        "machine (npm ci, without --omit=optional), and keep @duckdb/node-bindings external when bundling",
      { cause, subject: "@duckdb/node-bindings" },
    );
  }
}

export interface InstanceSettings {
  /** Bytes. Default: DuckDB's, 80% of the machine's memory. */
  readonly memoryBytes?: number;
  /** Default: one per core. */
  readonly threads?: number;
  /** Where sorts, joins and aggregates spill. Made on first use by DuckDB. */
  readonly spillDir: string;
  /** Folders and files outside of which nothing is read or written; and then no setting can be changed. Default: no limits. */
  readonly confinedTo?: { readonly folders?: readonly string[]; readonly files?: readonly string[] };
  /** The only optimizers that may run. Default: all. */
  readonly optimizers?: readonly string[];
}

/** The database that a connection uses when it uses no other. */
export const BASE_DATABASE = "_eider";

/** A DuckDB instance of its own. Memory, threads and the settings below hold for all its connections. */
export async function openInstance(native: Native, settings: InstanceSettings): Promise<NativeDatabase> {
  const config = native.create_config();
  const set = (name: string, value: string | number): void => native.set_config(config, name, String(value));
  if (settings.memoryBytes !== undefined) set("memory_limit", `${Math.max(1, Math.floor(settings.memoryBytes))}B`);
  if (settings.threads !== undefined) set("threads", settings.threads);
  set("temp_directory", settings.spillDir);
  set("preserve_insertion_order", "true");
  // Nothing is downloaded behind the user's back, and no file of the user's home folder changes what a query means.
  set("autoinstall_known_extensions", "false");
  set("autoload_known_extensions", "false");
  set("allow_persistent_secrets", "false");
  const database = await native.open(":memory:", config);
  const connection = await native.connect(database);
  try {
    // DuckDB's first database is called `memory`, and would be in the way of a namespace of that name.
    await native.query(connection, `ATTACH ':memory:' AS ${BASE_DATABASE}`);
    await native.query(connection, `USE ${BASE_DATABASE}`);
    await native.query(connection, "DETACH memory");
    await native.query(connection, "SET GLOBAL TimeZone = 'UTC'");
    // Data files never change, so their footers may be kept.
    await native.query(connection, "SET GLOBAL parquet_metadata_cache = true");
    // Gives an error's kind and position as data.
    await native.query(connection, "SET GLOBAL errors_as_json = true");
    if (settings.optimizers) {
      const allowed = settings.optimizers.map(quoteText).join(", ");
      const others = `SELECT string_agg(name, ',') FROM duckdb_optimizers() WHERE name NOT IN (${allowed})`;
      // SET takes no subquery.
      await native.query(connection, `SET VARIABLE others = (${others})`);
      await native.query(connection, "SET GLOBAL disabled_optimizers = getvariable('others')");
    }
    if (settings.confinedTo) {
      const { folders = [], files = [] } = settings.confinedTo;
      // A folder's name without its separator would also allow its siblings that begin like it.
      const texts = (paths: readonly string[]): string => paths.map(quoteText).join(", ");
      await native.query(connection, `SET GLOBAL allowed_directories = [${texts(folders.map((f) => `${f}${sep}`))}]`);
      await native.query(connection, `SET GLOBAL allowed_paths = [${texts(files)}]`);
      await native.query(connection, "SET GLOBAL enable_external_access = false");
      await native.query(connection, "SET GLOBAL lock_configuration = true");
    }
  } finally {
    native.disconnect_sync(connection);
  }
  return database;
}

/** A connection with a database in use: where none is, some statements do not bind. */
export async function openConnection(native: Native, database: NativeDatabase): Promise<NativeConnection> {
  const connection = await native.connect(database);
  await native.query(connection, `USE ${BASE_DATABASE}`);
  return connection;
}
