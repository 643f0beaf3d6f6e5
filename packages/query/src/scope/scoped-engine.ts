/**
 * SQL from outside: what `lake.scope(…)` runs. The statement is parsed, judged, planned and executed in a process of its
 * own; here the files are chosen, and what comes back is counted.
 */

import { batchBytes, LimitError, QueryError, type RecordBatch, sliceBatch } from "@eider/core";
import { toQueryError } from "../duckdb-error.js";
import type { QueryRunner, RunningQuery } from "../engine-query.js";
import { isMissingColumn, MissingColumns, startWithColumns } from "../missing-columns.js";
import { once } from "../once.js";
import { matchParameters } from "../parameters.js";
import type { PlanOptions } from "../plan.js";
import type { QueryColumn, QueryOptions, QueryStats } from "../query.js";
import { totalReads } from "../reads.js";
import type { SqlInput } from "../sql.js";
import { parseStatement, type Statement } from "../statement.js";
import { charOffset } from "../utf8-offset.js";
import type { ScopeOptions } from "./options.js";
import type { ProcessPool, ScopeProcess } from "./process-pool.js";
import type { ScopeReply, ScopeRequest } from "./protocol.js";
import type { ScopedPlan, ScopePlanner } from "./scope-planner.js";

/** Longer statements are refused before they are parsed. */
const MAX_SQL_CHARACTERS = 100_000;

const DEFAULT_LIMITS = {
  rows: 100_000,
  bytes: 64 * 1024 ** 2,
  timeoutMs: 30_000,
  memoryBytes: 256 * 1024 ** 2,
  concurrency: 2,
};

export interface ScopedEngineOptions {
  readonly scope: ScopeOptions;
  readonly planner: ScopePlanner;
  readonly pool: ProcessPool;
  readonly spillDir: string;
}

export class ScopedEngine implements QueryRunner {
  readonly #options: ScopedEngineOptions;
  readonly #limits: Required<NonNullable<ScopeOptions["limits"]>>;
  /** Those that wait for their turn. */
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(options: ScopedEngineOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.scope.limits };
  }

  start(input: SqlInput, options: QueryOptions): Promise<RunningQuery> {
    return startWithColumns((allColumns) => this.#start(input, { ...options, allColumns }));
  }

  async #start(input: SqlInput, options: PlanOptions): Promise<RunningQuery> {
    const startedAt = performance.now();
    const query = await this.#begin(input, options);
    try {
      const started = await query.run(false);
      if (started.reply !== "started") throw unexpected(started);
      const counted = new CountedRows(this.#limits, this.#options.scope.onLimit ?? "error");
      return {
        shape: started.shape,
        async *chunks() {
          for await (const batch of query.batches()) {
            const part = counted.take(batch);
            if (part.length > 0) yield part;
            if (counted.truncated) return;
          }
        },
        stats: (): QueryStats => ({
          snapshot: query.plan.snapshot,
          ...totalReads(query.plan.reads),
          elapsedMs: performance.now() - startedAt,
          rows: counted.rows,
          ...(counted.truncated && { truncated: true }),
        }),
        close: () => query.close(),
      };
    } catch (error) {
      await query.close();
      throw error;
    }
  }

  async columns(input: SqlInput, options: QueryOptions): Promise<QueryColumn[]> {
    const query = await this.#begin(input, options);
    try {
      const described = await query.run(true);
      if (described.reply !== "described") throw unexpected(described);
      return [...described.columns];
    } finally {
      await query.close();
    }
  }

  /** Judges and plans a statement, in its turn. */
  async #begin(input: SqlInput, options: PlanOptions): Promise<ScopedQuery> {
    if (input.text.length > MAX_SQL_CHARACTERS) {
      throw new LimitError("sql_too_long", `the SQL has more than ${MAX_SQL_CHARACTERS} characters`);
    }
    const parsed = parseStatement(input.text);
    // A list of ours: DuckDB's would name the databases and leave out namespaces.
    const statement = parsed.showsTables ? parseStatement(await this.#options.planner.tablesSql(options)) : parsed;
    const values = matchParameters(statement.parameters, input.params);
    const { planner, pool, scope, spillDir } = this.#options;
    await this.#turn();
    let process: ScopeProcess;
    try {
      process = pool.take();
    } catch (error) {
      this.#done();
      throw error;
    }
    const timeoutMs = Math.min(options.timeoutMs ?? Number.POSITIVE_INFINITY, this.#limits.timeoutMs);
    const watched = watch(process, timeoutMs, options.signal);
    let plan: ScopedPlan | undefined;
    const close = once(async () => {
      watched();
      await pool.giveBack(process);
      await plan?.release();
      this.#done();
    });
    try {
      options.signal?.throwIfAborted();
      plan = await planner.plan(statement, values, options, async (request, originalPosition) => {
        const asked = { sql: request.sql, originalPosition, statement, tables: planner.tableNames };
        const reply = await ask(process, request, asked);
        if (reply.reply !== "planned") throw unexpected(reply);
        return reply;
      });
      const { sql, parameters, views, others, now, paths } = plan;
      return new ScopedQuery(process, plan, statement, planner.tableNames, close, {
        op: "run",
        sql,
        parameters,
        views,
        others,
        now,
        files: paths,
        describeOnly: false,
        memoryBytes: this.#limits.memoryBytes,
        threads: scope.threads ?? 1,
        spillDir,
      });
    } catch (error) {
      await close();
      throw error;
    }
  }

  async #turn(): Promise<void> {
    if (this.#running < this.#limits.concurrency) this.#running++;
    // Whoever is done hands its turn on.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #done(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running--;
  }
}

/** One statement in its process. */
class ScopedQuery {
  readonly #process: ScopeProcess;
  readonly plan: ScopedPlan;
  readonly #statement: Statement;
  readonly #tables: readonly string[];
  readonly close: () => Promise<void>;
  readonly #request: Extract<ScopeRequest, { op: "run" }>;

  constructor(
    process: ScopeProcess,
    plan: ScopedPlan,
    statement: Statement,
    tables: readonly string[],
    close: () => Promise<void>,
    request: Extract<ScopeRequest, { op: "run" }>,
  ) {
    this.#process = process;
    this.plan = plan;
    this.#statement = statement;
    this.#tables = tables;
    this.close = close;
    this.#request = request;
  }

  run(describeOnly: boolean): Promise<ScopeReply> {
    return this.#ask({ ...this.#request, describeOnly });
  }

  async *batches(): AsyncGenerator<RecordBatch, void, undefined> {
    for (;;) {
      const reply = await this.#ask({ op: "next" });
      if (reply.reply === "end") return;
      if (reply.reply !== "rows") throw unexpected(reply);
      yield reply.batch;
    }
  }

  #ask(request: ScopeRequest): Promise<ScopeReply> {
    const { sql, originalPosition } = this.plan;
    return ask(this.#process, request, { sql, originalPosition, statement: this.#statement, tables: this.#tables });
  }
}

/** What a statement is about, for its errors. */
interface Asked extends Pick<ScopedPlan, "sql" | "originalPosition"> {
  readonly statement: Statement;
  readonly tables: readonly string[];
}

/** Asks the process; what it refuses and what fails in it is thrown. */
async function ask(
  process: ScopeProcess,
  request: ScopeRequest,
  { sql, originalPosition, statement: { text }, tables }: Asked,
): Promise<ScopeReply> {
  const positionOf = (bytes: number): number | undefined => {
    const at = charOffset(sql, bytes);
    return at === undefined ? undefined : originalPosition(at);
  };
  const reply = await process.request(request);
  if (reply.reply === "refused") {
    const { reason, position } = reply.refusal;
    const at = position === undefined ? undefined : positionOf(position);
    throw new QueryError("scope_refused", reason, { ...(at !== undefined && { position: at }) });
  }
  if (reply.reply === "failed") {
    const { error, prefixBytes } = reply;
    if (isMissingColumn(error.message)) throw new MissingColumns(error);
    throw toQueryError(
      error,
      { sql: text, positionOf: (offset) => positionOf(offset - prefixBytes), tables },
      undefined,
    );
  }
  return reply;
}

/** Ends the process when time is up or the signal aborts. Returns what ends the watch. */
function watch(process: ScopeProcess, timeoutMs: number, signal: AbortSignal | undefined): () => void {
  const timer = setTimeout(() => {
    void process.kill(new LimitError("timeout", `the query took longer than its limit of ${timeoutMs} ms`));
  }, timeoutMs);
  // A stream that nobody reads any more keeps no process alive; what is asked of the query's process does.
  timer.unref();
  const abort = (): void => void process.kill(signal!.reason);
  signal?.addEventListener("abort", abort, { once: true });
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  };
}

/** Keeps a result within its limits. */
class CountedRows {
  readonly #limits: { readonly rows: number; readonly bytes: number };
  readonly #onLimit: "error" | "truncate";
  #bytes = 0;
  rows = 0;
  truncated = false;

  constructor(limits: { readonly rows: number; readonly bytes: number }, onLimit: "error" | "truncate") {
    this.#limits = limits;
    this.#onLimit = onLimit;
  }

  /** The rows of the batch that are still within the limits. @throws LimitError `too_many_rows`, `too_many_bytes` */
  take(batch: RecordBatch): RecordBatch {
    const { rows, bytes } = this.#limits;
    let part = batch;
    if (this.rows + part.length > rows) {
      if (this.#onLimit === "error") throw new LimitError("too_many_rows", `the result has more than ${rows} rows`);
      part = sliceBatch(part, 0, rows - this.rows);
      this.truncated = true;
    }
    while (part.length > 0 && this.#bytes + batchBytes(part) > bytes) {
      if (this.#onLimit === "error") throw new LimitError("too_many_bytes", `the result has more than ${bytes} bytes`);
      part = sliceBatch(part, 0, Math.floor(part.length / 2));
      this.truncated = true;
    }
    this.rows += part.length;
    this.#bytes += batchBytes(part);
    return part;
  }
}

function unexpected({ reply }: ScopeReply): QueryError {
  return new QueryError("engine_crashed", `the query's process answered "${reply}" out of turn`);
}
