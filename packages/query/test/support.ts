/** A small lake of real parts: a store, a SQLite catalog, and data files written by plain DuckDB. */

import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { type Catalog, type DataFile, SqliteCatalog, type TableInfo } from "@eider/catalog";
import {
  assignFieldIds,
  concatBatches,
  createTextParser,
  encodeRecordBatch,
  lastFieldId,
  ParquetEncoder,
  parquetFooterBytes,
  parquetReady,
  type RecordBatch,
  type Schema,
  type SchemaInput,
  storedSchema,
  toSchema,
} from "@eider/core";
import { chunkDigest } from "@eider/core/node";
import { FileStore, MemoryStore, type ObjectStore } from "@eider/storage";
import { type EngineOptions, makeSql, QueryEngine, type QueryOptions, type Sql } from "../src/index.js";

/** A folder for one test. */
export class Scratch implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), "eider-query-test-"));

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export interface TestLakeOptions extends Partial<Omit<EngineOptions, "catalog" | "store">> {
  /** Folder of a FileStore. Default: a MemoryStore. */
  readonly root?: string;
  /** In place of the MemoryStore. */
  readonly store?: ObjectStore;
  readonly clock?: () => number;
}

export class TestLake implements AsyncDisposable {
  readonly store: ObjectStore;
  readonly catalog: Catalog;
  readonly engine: QueryEngine;
  readonly scratch: Scratch;
  readonly plain: DuckDBConnection;
  #files = 0;

  private constructor(
    store: ObjectStore,
    catalog: Catalog,
    engine: QueryEngine,
    scratch: Scratch,
    plain: DuckDBConnection,
  ) {
    this.store = store;
    this.catalog = catalog;
    this.engine = engine;
    this.scratch = scratch;
    this.plain = plain;
  }

  static async open({ root, clock, store: given, ...options }: TestLakeOptions = {}): Promise<TestLake> {
    const scratch = new Scratch();
    const store = given ?? (root === undefined ? new MemoryStore() : new FileStore(root));
    const catalog = await SqliteCatalog.open({ path: ":memory:", ...(clock && { clock }) });
    const engine = await QueryEngine.open({ catalog, store, tempDir: scratch.path, ...options });
    const plain = await (await DuckDBInstance.create()).connect();
    await plain.run("SET TimeZone = 'UTC'");
    return new TestLake(store, catalog, engine, scratch, plain);
  }

  get sql(): Sql {
    return this.with({});
  }

  with(options: QueryOptions): Sql {
    return makeSql(async () => this.engine, options);
  }

  /** Makes a table. */
  async create(name: string, input: SchemaInput): Promise<TableInfo> {
    const schema = assignFieldIds(toSchema(input));
    const id = createHash("sha256")
      .update(`${name}:${this.#files++}`)
      .digest("hex")
      .slice(0, 32);
    await this.#commit([
      {
        op: "schema",
        table: id,
        version: 1,
        schema,
        lastFieldId: lastFieldId(schema),
        create: { name, folder: `t${this.#files}`, partitionBy: [], orderBy: [] },
      },
    ]);
    return (await this.catalog.table(name))!;
  }

  /** Gives a table a new schema; fields that stay keep their ids. */
  async evolve(name: string, schema: Schema): Promise<void> {
    const table = (await this.catalog.table(name))!;
    const next = assignFieldIds(schema, table.lastFieldId);
    await this.#commit([
      {
        op: "schema",
        table: table.id,
        version: table.schemaVersion + 1,
        schema: next,
        lastFieldId: Math.max(table.lastFieldId, lastFieldId(next)),
      },
    ]);
  }

  async drop(name: string): Promise<void> {
    await this.#commit([{ op: "drop", table: (await this.catalog.table(name))!.id }]);
  }

  /** Appends what a SELECT of plain DuckDB gives, as one data file of the table's current schema. Returns its key. */
  async append(
    name: string,
    select: string,
    options: { readonly copy?: string; readonly key?: string } = {},
  ): Promise<string> {
    const table = (await this.catalog.table(name))!;
    const { file, intent } = await this.#write(table, select, options);
    await this.#commit(
      [
        {
          op: "append",
          table: table.id,
          batch: `batch-${this.#files}`,
          hash: `bytes:${file.sha256}`,
          rows: file.rows,
          schemaVersion: table.schemaVersion,
          files: [file],
          rejects: [],
        },
      ],
      intent,
    );
    return file.key;
  }

  /**
   * Appends rows in NDJSON as a data file of our own encoder, whose parts can be checked.
   * @param groups lines that end with a row group
   */
  async appendEncoded(name: string, groups: readonly (readonly string[])[]): Promise<DataFile> {
    await parquetReady();
    const table = (await this.catalog.table(name))!;
    const schema = storedSchema(table.schema);
    const encoder = new ParquetEncoder(schema, { chunkDigest });
    const encoded = groups.flatMap((lines) => {
      const parts: Uint8Array[] = [];
      const options = { schema, format: "ndjson", unknownFields: "misfit", valueMisfits: "misfit" } as const;
      const parser = createTextParser(options, (part) => parts.push(...encoder.writeRowGroup(part)));
      parser.push(Buffer.from(lines.join("\n")));
      parser.end();
      return parts;
    });
    const bytes = Buffer.concat([...encoded, ...encoder.finish()]);
    const { rows } = encoder;
    const end = bytes.subarray(bytes.length - parquetFooterBytes(bytes));
    const intent = await this.catalog.begin();
    const file: DataFile = {
      key: `${table.folder}/data/${intent.base}-${++this.#files}.parquet`,
      bytes: bytes.length,
      rows,
      sha256: createHash("sha256").update(bytes).digest("hex"),
      base: intent.base,
      schemaVersion: table.schemaVersion,
      partition: [],
      columns: encoder.statistics(),
      footer: { bytes: end.length, sha256: createHash("sha256").update(end).digest("hex") },
    };
    await this.store.put(file.key, bytes);
    const append = {
      op: "append",
      table: table.id,
      batch: `batch-${this.#files}`,
      hash: `bytes:${file.sha256}`,
    } as const;
    await this.#commit(
      [{ ...append, rows, schemaVersion: table.schemaVersion, files: [file], rejects: [] }],
      intent.id,
    );
    return file;
  }

  /** Puts a data file; its intent is left to whoever commits it. */
  async #write(
    table: TableInfo,
    select: string,
    options: { readonly copy?: string; readonly key?: string } = {},
  ): Promise<{ readonly file: DataFile; readonly intent: string }> {
    const path = join(this.scratch.path, `written-${++this.#files}.parquet`);
    const ids = storedSchema(table.schema)
      .fields.map((field) => `"${field.name.replaceAll('"', '""')}": ${field.id}`)
      .join(", ");
    await this.plain.run(
      `COPY (${select}) TO '${path}' (FORMAT parquet, FIELD_IDS {${ids}}${options.copy ? `, ${options.copy}` : ""})`,
    );
    const bytes = readFileSync(path);
    const count = await this.plain.runAndReadAll(`SELECT count(*)::INT FROM '${path}'`);
    const rows = count.getRows()[0]![0] as number;
    const intent = await this.catalog.begin();
    const key = options.key ?? `${table.folder}/data/${intent.base}-${this.#files}.parquet`;
    await this.store.put(key, bytes);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const { schemaVersion } = table;
    const file = {
      key,
      bytes: bytes.length,
      rows,
      sha256,
      base: intent.base,
      schemaVersion,
      partition: [],
      columns: [],
    };
    return { file, intent: intent.id };
  }

  /** Appends rows in NDJSON as hot batches of one entry: `{ batch id: lines }`. */
  async appendHot(name: string, batches: Readonly<Record<string, readonly string[]>>): Promise<void> {
    const table = (await this.catalog.table(name))!;
    const schema = storedSchema(table.schema);
    const appends = Object.entries(batches).map(([batch, lines]) => {
      const parts: RecordBatch[] = [];
      const options = { schema, format: "ndjson", unknownFields: "misfit", valueMisfits: "misfit" } as const;
      const parser = createTextParser(options, (part) => parts.push(part));
      parser.push(Buffer.from(lines.join("\n")));
      parser.end();
      const hot = { data: encodeRecordBatch(concatBatches(parts)), bounds: [] };
      const what = { op: "append", table: table.id, batch, hash: `bytes:${batch}`, rows: lines.length } as const;
      return { ...what, schemaVersion: table.schemaVersion, files: [], hot, rejects: [] };
    });
    await this.#commit(appends);
  }

  /** Puts hot batches into a data file, which a SELECT of plain DuckDB gives. */
  async fold(name: string, removeHot: readonly string[], select: string): Promise<void> {
    const table = (await this.catalog.table(name))!;
    const { file, intent } = await this.#write(table, select);
    await this.#commit([{ op: "rearrange", table: table.id, removeHot, removeFiles: [], addFiles: [file] }], intent);
  }

  async #commit(operations: Parameters<Catalog["commit"]>[0]["operations"], intent?: string): Promise<void> {
    const result = await this.catalog.commit({ operations, ...(intent !== undefined && { intent }) });
    if (result.status !== "committed")
      throw new Error(`the test's commit is ${result.status}: ${JSON.stringify(result)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.close();
    await this.catalog[Symbol.asyncDispose]();
    this.plain.closeSync();
    this.scratch[Symbol.dispose]();
  }
}
