/**
 * Rows and Arrow data that a query sees as tables, beside those of the lake. Each becomes a Parquet file in the temporary
 * folder for as long as the query runs, by the columns and the encoder that appends have: so types are what they would be
 * in a table, and one kind of scan serves all.
 */

import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseTableName } from "@eider/catalog";
import {
  AlreadyExistsError,
  type ArrowLike,
  alignBatch,
  assignFieldIds,
  createRowInferrer,
  createRowParser,
  fromArrow,
  InvalidInputError,
  isArrowLike,
  nameKey,
  ParquetEncoder,
  parquetReady,
  parseSchema,
  type RecordBatch,
  type Schema,
  type SchemaInput,
  sliceBatch,
  storedSchema,
  toSchema,
} from "@eider/core";
import { type SourceFile, tableSql } from "./table-sql.js";
import { Turns } from "./turns.js";

/** An array of rows, a table or record batch of `apache-arrow`, or rows with their schema: needed where there are none. */
export type GivenTable =
  | readonly object[]
  | ArrowLike
  | { readonly rows: readonly object[]; readonly schema: SchemaInput };

/** By name, `people` or `ns.people`: names that no table and no view of the lake has. */
export type GivenTables = Readonly<Record<string, GivenTable>>;

export interface HeldGiven {
  /** All that were given. */
  readonly names: readonly string[];
  /** Those that are needed. */
  readonly tables: readonly { readonly name: string; readonly schema: Schema; readonly sql: string }[];
  release(): Promise<void>;
}

/** Rows read at once, and rows of a row group. */
const CHUNK_ROWS = 1000;
const GROUP_ROWS = 100_000;
/** Rows at fault that an error names. */
const NAMED_ROWS = 20;

export class GivenFiles {
  readonly #folder: string;
  #files = 0;

  /** @param folder is made when it is needed */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * @param wants which of them the statement needs: the others are not looked at
   * @param taken names of the lake's tables and views
   * @throws AlreadyExistsError `name_taken`; InvalidInputError `bad_name`, `bad_tables`, `rejected_rows`; SchemaError
   */
  async hold(
    given: GivenTables,
    wants: (name: string) => boolean,
    taken: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<HeldGiven> {
    assertNames(Object.keys(given), taken);
    const files: string[] = [];
    const release = async (): Promise<void> => {
      for (const path of files) await rm(path, { force: true });
    };
    try {
      const tables: HeldGiven["tables"][number][] = [];
      for (const [name, table] of Object.entries(given)) {
        if (!wants(name)) continue;
        const { schema, batches } = await readTable(name, table, signal);
        const file = await this.#write(schema, batches, files, signal);
        tables.push({ name, schema, sql: tableSql(schema, file.rows === 0 ? [] : [file], { isOwnSchema: true }) });
      }
      return { names: Object.keys(given), tables, release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  async #write(
    schema: Schema,
    batches: Iterable<RecordBatch> | AsyncIterable<RecordBatch>,
    files: string[],
    signal: AbortSignal | undefined,
  ): Promise<SourceFile> {
    await parquetReady();
    const stored = storedSchema(schema);
    const path = join(this.#folder, `${++this.#files}.parquet`);
    let rows = 0;
    if (stored.fields.length === 0) {
      for await (const batch of batches) rows += batch.length;
      return { path, rows };
    }
    // Read once, by this process: the smallest file is not the fastest.
    const encoder = new ParquetEncoder(stored, { compression: "uncompressed", pageIndex: false });
    await mkdir(this.#folder, { recursive: true });
    await using file = await open(path, "w");
    files.push(path);
    for await (const batch of batches) {
      for (let at = 0; at < batch.length; at += GROUP_ROWS) {
        signal?.throwIfAborted();
        const group = sliceBatch(batch, at, Math.min(batch.length, at + GROUP_ROWS));
        for (const chunk of encoder.writeRowGroup(group)) await file.write(chunk);
      }
      rows += batch.length;
    }
    for (const chunk of encoder.finish()) await file.write(chunk);
    return { path, rows };
  }
}

function assertNames(names: readonly string[], taken: readonly string[]): void {
  const keys = new Set(taken.map(nameKey));
  for (const name of names) {
    parseTableName(name);
    if (keys.has(nameKey(name))) {
      throw new AlreadyExistsError(
        "name_taken",
        `the query is given a table ${JSON.stringify(name)}, and has one of that name already: give it another name`,
        { subject: name },
      );
    }
    keys.add(nameKey(name));
  }
}

interface ReadTable {
  readonly schema: Schema;
  readonly batches: Iterable<RecordBatch> | AsyncIterable<RecordBatch>;
}

async function readTable(name: string, table: GivenTable, signal: AbortSignal | undefined): Promise<ReadTable> {
  if (isArrowLike(table)) return readArrow(name, table);
  if (Array.isArray(table)) return readRows(name, table, undefined, signal);
  const { rows, schema } = (table ?? {}) as { readonly rows?: unknown; readonly schema?: SchemaInput };
  if (Array.isArray(rows) && schema !== undefined) return readRows(name, rows, parseSchema(schema), signal);
  throw new InvalidInputError(
    "bad_tables",
    `the table ${JSON.stringify(name)} has to be an array of rows, Arrow data, or { rows, schema }`,
    { subject: name },
  );
}

function readArrow(name: string, table: ArrowLike): ReadTable {
  const { schema: own, batches } = fromArrow(table);
  const schema = assignFieldIds(toSchema(own));
  return {
    schema,
    batches: (function* () {
      let read = 0;
      for (const batch of batches) {
        const { batch: aligned, rejects } = alignBatch(batch, schema);
        if (rejects.length > 0) throw rejectedRows(name, rejects, read);
        read += batch.length;
        yield aligned;
      }
    })(),
  };
}

async function readRows(
  name: string,
  rows: readonly unknown[],
  given: Schema | undefined,
  signal: AbortSignal | undefined,
): Promise<ReadTable> {
  const chunks = async function* (): AsyncGenerator<readonly unknown[]> {
    const turns = new Turns();
    for (let at = 0; at < rows.length; at += CHUNK_ROWS) {
      signal?.throwIfAborted();
      if (turns.isOver) await turns.next();
      yield rows.slice(at, at + CHUNK_ROWS);
    }
  };
  const infer = async (): Promise<Schema> => {
    const inferrer = createRowInferrer({});
    for await (const chunk of chunks()) inferrer.push(chunk);
    return inferrer.end();
  };
  const schema = assignFieldIds(given ?? (await infer()));
  if (schema.fields.length === 0 && rows.length === 0) {
    throw new InvalidInputError(
      "bad_tables",
      `the table ${JSON.stringify(name)} has no rows to tell its columns: pass { rows, schema }`,
      { subject: name },
    );
  }
  const parser = createRowParser({ schema, unknownFields: "reject", valueMisfits: "reject" });
  return {
    schema,
    batches: (async function* () {
      const taken = function* (): Generator<RecordBatch> {
        if (parser.rejects.length > 0) throw rejectedRows(name, parser.rejects, 0);
        for (let batch = parser.take(); batch; batch = parser.take()) yield batch;
      };
      for await (const chunk of chunks()) {
        parser.push(chunk);
        yield* taken();
      }
      parser.end();
      yield* taken();
    })(),
  };
}

function rejectedRows(
  name: string,
  rejects: readonly { readonly line: number; readonly code: string; readonly reason: string }[],
  before: number,
): InvalidInputError {
  const rows = rejects.slice(0, NAMED_ROWS).map(({ line, code, reason }) => ({ line: before + line, code, reason }));
  return new InvalidInputError(
    "rejected_rows",
    `row ${rows[0]!.line} of the table ${JSON.stringify(name)} cannot be taken: ${rows[0]!.reason}`,
    { rows, subject: name },
  );
}
