/**
 * One execution of one statement.
 *
 * DuckDB's streamed results end as if complete when a file vanishes, on an interrupt and on any error (seen on 1.5.6: no
 * call of the API tells). So a streamed statement is wrapped: `… UNION ALL` one last row that says it is the end. Order
 * is kept, so that row comes only after all others; a stream without it has failed.
 */

import { type Field, QueryError, type RecordBatch } from "@eider/core";
import { type ColumnReader, VectorReader } from "./arrow.js";
import type { Interrupter } from "./interrupter.js";
import type { Native, NativeChunk, NativeResult, NativeStatement, NativeType } from "./native.js";
import { type BoundParameters, bindParameters } from "./parameters.js";
import type { QueryColumn } from "./query.js";
import { castTarget, type Shape, shapeOf, typeText, uniqueNames } from "./result-types.js";
import type { Session } from "./session.js";
import { Turns } from "./turns.js";

/** What stands before the user's SQL in a wrapped statement; error positions are counted behind it. */
const OPEN = "FROM (";

export interface RunInput {
  readonly native: Native;
  readonly session: Session;
  readonly interrupter: Interrupter;
  /** With tables of other snapshots in place. */
  readonly sql: string;
  /** Whether it can stand in `FROM (…)`. */
  readonly nests: boolean;
  readonly parameters: BoundParameters;
  /** Turns what DuckDB throws into our errors; `prefixBytes` of SQL stood before the user's. */
  readonly translate: (error: unknown, prefixBytes: number) => Promise<never>;
}

/** Names and types of a result, and how to read it. */
export interface ResultShape {
  readonly columns: readonly QueryColumn[];
  readonly fields: readonly Field[];
  readonly shapes: readonly Shape[];
}

interface Described {
  readonly names: readonly string[];
  readonly types: readonly NativeType[];
}

export class Run {
  readonly #input: RunInput;
  readonly #vectors: VectorReader;

  constructor(input: RunInput) {
    this.#input = input;
    this.#vectors = new VectorReader(input.native);
  }

  /** Another statement without parameters, on the same session. */
  another(sql: string): Run {
    return new Run({ ...this.#input, sql, nests: true, parameters: new Map() });
  }

  /** Names and types without running the statement. */
  async describe(): Promise<readonly QueryColumn[]> {
    const statement = await this.#prepare(this.#input.sql, 0);
    const { names, types } = this.#described(statement) ?? (await this.#probe());
    return this.#columns(names, types);
  }

  /** Runs the statement to its end before anything is read: an error of any kind is thrown here. */
  async materialize(): Promise<{
    readonly shape: ResultShape;
    chunks(): AsyncGenerator<RecordBatch, void, undefined>;
  }> {
    const { native, sql, nests } = this.#input;
    let statement = await this.#prepare(sql, 0);
    let described = this.#described(statement);
    let result: NativeResult | undefined;
    if (described === undefined) {
      // Types that depend on parameters are known once it has run.
      result = await this.#execute(statement, 0, false);
      described = resultColumns(native, result);
    }
    if (nests && needsCast(native, described.types)) {
      const wrapped = wrap(native, sql, described.types, false);
      statement = await this.#prepare(wrapped.sql, wrapped.prefixBytes);
      result = await this.#execute(statement, wrapped.prefixBytes, false);
    }
    result ??= await this.#execute(statement, 0, false);
    const readers = this.#readers(result, described.types.length);
    const shape = this.#shape(described, readers);
    return { shape, chunks: () => this.#materializedChunks(result, shape, readers) };
  }

  /**
   * Starts the statement; its rows are computed as they are read. Statements that cannot stand in `FROM (…)`, which have
   * short results, are run to their end first.
   */
  async stream(): Promise<{ readonly shape: ResultShape; chunks(): AsyncGenerator<RecordBatch, void, undefined> }> {
    const { native, sql, nests } = this.#input;
    if (!nests) return this.materialize();
    const described = this.#described(await this.#prepare(sql, 0)) ?? (await this.#probe());
    const wrapped = wrap(native, sql, described.types, true);
    const statement = await this.#prepare(wrapped.sql, wrapped.prefixBytes);
    const result = await this.#execute(statement, wrapped.prefixBytes, true);
    const readers = this.#readers(result, described.types.length);
    const shape = this.#shape(described, readers);
    return { shape, chunks: () => this.#streamedChunks(result, shape, readers, wrapped.prefixBytes) };
  }

  async *#materializedChunks(
    result: NativeResult,
    shape: ResultShape,
    readers: readonly ColumnReader[],
  ): AsyncGenerator<RecordBatch, void, undefined> {
    const { native, interrupter } = this.#input;
    const count = native.result_chunk_count(result);
    const turns = new Turns();
    for (let i = 0; i < count; i++) {
      const chunk = native.result_get_chunk(result, i);
      const rows = native.data_chunk_get_size(chunk);
      if (rows > 0) yield this.#vectors.batch(chunk, rows, shape.fields, readers);
      if (turns.isOver) {
        await turns.next();
        interrupter.throwIfStopped();
      }
    }
  }

  async *#streamedChunks(
    result: NativeResult,
    shape: ResultShape,
    readers: readonly ColumnReader[],
    prefixBytes: number,
  ): AsyncGenerator<RecordBatch, void, undefined> {
    const { native } = this.#input;
    const fetch = (): Promise<NativeChunk | null> => this.#native(() => native.fetch_chunk(result), prefixBytes);
    for (let chunk = await fetch(); chunk !== null; chunk = await fetch()) {
      const size = native.data_chunk_get_size(chunk);
      if (size === 0) break;
      const isEnd = native.vector_get_data(native.data_chunk_get_vector(chunk, readers.length), size)[size - 1] === 1;
      const rows = isEnd ? size - 1 : size;
      if (rows > 0) yield this.#vectors.batch(chunk, rows, shape.fields, readers);
      if (isEnd) return;
    }
    await this.#explainFailure(prefixBytes);
  }

  /** DuckDB does not say why a stream stopped. Running the statement again, its rows thrown away, does. */
  async #explainFailure(prefixBytes: number): Promise<never> {
    const { native, session, parameters, sql, translate } = this.#input;
    const again = `EXPLAIN ANALYZE SELECT * ${OPEN}${sql}\n)`;
    await this.#native(
      async () => {
        const statement = await session.prepare(again);
        bindParameters(native, statement, parameters);
        await native.execute_prepared(statement);
      },
      Buffer.byteLength(again.slice(0, again.indexOf(OPEN) + OPEN.length)),
    );
    return translate(new QueryError("incomplete_result", "the result ended early: run the query again"), prefixBytes);
  }

  /** For types that only the values of parameters tell. */
  async #probe(): Promise<Described> {
    const { native, sql, nests } = this.#input;
    if (!nests) throw new QueryError("sql_error", "the columns of this statement are known only once it runs");
    const prefixBytes = Buffer.byteLength(`SELECT * ${OPEN}`);
    const statement = await this.#prepare(`SELECT * ${OPEN}${sql}\n) LIMIT 0`, prefixBytes);
    return resultColumns(native, await this.#execute(statement, prefixBytes, false));
  }

  #prepare(sql: string, prefixBytes: number): Promise<NativeStatement> {
    const { native, session } = this.#input;
    return this.#native(async () => {
      const statement = await session.prepare(sql);
      const { SELECT, EXPLAIN, COPY, RELATION } = native.StatementType;
      // The tokens said so already; this is DuckDB's own word.
      if (![SELECT, EXPLAIN, COPY, RELATION].includes(native.prepared_statement_type(statement))) {
        throw new QueryError("read_only_sql", "SQL only reads: this statement is none of SELECT, EXPLAIN, COPY … TO");
      }
      return statement;
    }, prefixBytes);
  }

  #execute(statement: NativeStatement, prefixBytes: number, streaming: boolean): Promise<NativeResult> {
    const { native, parameters } = this.#input;
    return this.#native(() => {
      bindParameters(native, statement, parameters);
      return streaming ? native.execute_prepared_streaming(statement) : native.execute_prepared(statement);
    }, prefixBytes);
  }

  async #native<T>(work: () => Promise<T>, prefixBytes: number): Promise<T> {
    const { interrupter, session, translate } = this.#input;
    try {
      return await interrupter.call(session.connection, work);
    } catch (error) {
      // Whatever was thrown, the reason for stopping is the answer.
      interrupter.throwIfStopped();
      return translate(error, prefixBytes);
    }
  }

  /** A prepared statement's columns; undefined while the types of parameters are open. */
  #described(statement: NativeStatement): Described | undefined {
    const { native } = this.#input;
    const count = native.prepared_statement_column_count(statement);
    const names: string[] = [];
    const types: NativeType[] = [];
    for (let i = 0; i < count; i++) {
      if (native.prepared_statement_column_type(statement, i) === native.Type.INVALID) return undefined;
      names.push(native.prepared_statement_column_name(statement, i));
      types.push(native.prepared_statement_column_logical_type(statement, i));
    }
    return { names, types };
  }

  #readers(result: NativeResult, count: number): ColumnReader[] {
    const { native } = this.#input;
    return Array.from({ length: count }, (_, i) => this.#vectors.column(native.column_logical_type(result, i)));
  }

  #columns(names: readonly string[], types: readonly NativeType[]): QueryColumn[] {
    return uniqueNames(names).map((name, i) => ({ name, type: typeText(this.#input.native, types[i]!) }));
  }

  #shape({ names, types }: Described, readers: readonly ColumnReader[]): ResultShape {
    const columns = this.#columns(names, types);
    return {
      columns,
      fields: readers.map(({ type }, i) => ({ id: 0, name: columns[i]!.name, type, nullable: true })),
      shapes: types.map((type) => shapeOf(this.#input.native, type)),
    };
  }
}

function resultColumns(native: Native, result: NativeResult): Described {
  const at = Array.from({ length: native.column_count(result) }, (_, i) => i);
  return {
    names: at.map((i) => native.column_name(result, i)),
    types: at.map((i) => native.column_logical_type(result, i)),
  };
}

function needsCast(native: Native, types: readonly NativeType[]): boolean {
  return types.some((type) => castTarget(native, type) !== undefined);
}

/** The statement with columns that we cannot read cast to text, and, to stream it, with its end row. */
function wrap(
  native: Native,
  sql: string,
  types: readonly NativeType[],
  withEnd: boolean,
): { readonly sql: string; readonly prefixBytes: number } {
  const names = types.map((_, i) => `c${i}`);
  const selected = types.map((type, i) => {
    const target = castTarget(native, type);
    return target === undefined ? names[i]! : `CAST(${names[i]} AS ${target})`;
  });
  const prefix = `SELECT ${[...selected, ...(withEnd ? ["false"] : [])].join(", ")} ${OPEN}`;
  const end = withEnd ? ` UNION ALL SELECT ${names.map(() => "NULL").join(", ")}, true` : "";
  // The line feed ends a comment that may end the user's SQL.
  return { sql: `${prefix}${sql}\n) AS q(${names.join(", ")})${end}`, prefixBytes: Buffer.byteLength(prefix) };
}
