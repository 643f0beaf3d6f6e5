/**
 * The process in which SQL from outside runs: an entry of its own, started by `process-pool.ts`. DuckDB cannot be kept
 * within its memory by settings alone (a scalar function may ask for any size), nor always be interrupted; a process can be
 * ended. It has no environment, opens no file but those of its query, and watches its own size.
 */

import { concatBatches, type RecordBatch } from "@eider/core";
import { readDuckDBError } from "../duckdb-error.js";
import { Interrupter } from "../interrupter.js";
import { loadNative, type Native, openInstance } from "../native.js";
import { rewriteQuery } from "../rewrite.js";
import { Run } from "../run.js";
import { PLANNING_OPTIMIZERS, ScanPlanner } from "../scan-planner.js";
import { aloneDatabases, Session, type TableView } from "../session.js";
import { refusalOf } from "./guard.js";
import type { ScopeReply, ScopeRequest } from "./protocol.js";

/** Milliseconds between two looks at this process's size. */
const WATCH_MS = 10;
/** What a query may take beyond its memory limit, for all that DuckDB does not count; in bytes. */
const UNCOUNTED_BYTES = 128 * 1024 ** 2;
/** Rows of one reply, unless the result has fewer. */
const REPLY_ROWS = 61_440;

/** A statement that was started. */
interface Started {
  readonly session: Session;
  readonly interrupter: Interrupter;
  readonly watch: NodeJS.Timeout;
  chunks: AsyncIterator<RecordBatch> | undefined;
}

class Failed extends Error {
  readonly reply: ScopeReply;

  constructor(error: unknown, prefixBytes: number) {
    super();
    this.reply = { reply: "failed", error: readDuckDBError(error), prefixBytes };
  }
}

class ScopeWorker {
  readonly #native: Native;
  readonly #planner: ScanPlanner;
  #started: Started | undefined;

  constructor(native: Native) {
    this.#native = native;
    this.#planner = new ScanPlanner(native, () =>
      openInstance(native, {
        spillDir: "",
        threads: 1,
        memoryBytes: UNCOUNTED_BYTES,
        optimizers: PLANNING_OPTIMIZERS,
        confinedTo: { files: [] },
      }),
    );
  }

  async answer(request: ScopeRequest): Promise<ScopeReply> {
    try {
      switch (request.op) {
        case "plan":
          return await this.#plan(request);
        case "run":
          return await this.#run(request);
        case "next":
          return await this.#next();
        case "close":
          await this.#close();
          return { reply: "closed" };
      }
    } catch (error) {
      return error instanceof Failed ? error.reply : new Failed(error, 0).reply;
    }
  }

  async #plan(request: Extract<ScopeRequest, { op: "plan" }>): Promise<ScopeReply> {
    const { statement, parameters, travels, sql, tables, others } = request;
    const watch = watchSize(UNCOUNTED_BYTES);
    try {
      const { databases } = aloneDatabases(others.keys());
      const namesOf = (views: readonly TableView[]): string[] => views.map(({ name }) => name);
      const refusal = refusalOf(
        await this.#planner.parse(sql),
        namesOf(tables),
        new Map([...others].map(([snapshot, views]) => [databases.get(snapshot)!, namesOf(views)])),
      );
      if (refusal) return { reply: "refused", refusal };
      const plan = await this.#planner.serialize(
        { key: JSON.stringify([tables, ...others]), main: tables, others },
        statement.names,
        (session) => rewriteQuery(statement, parameters, travels, session),
      );
      const session = plan && { database: plan.session.database, databases: plan.session.databases };
      return { reply: "planned", plan: plan?.text, session, now: plan?.now };
    } finally {
      clearInterval(watch);
    }
  }

  async #run(request: Extract<ScopeRequest, { op: "run" }>): Promise<ScopeReply> {
    const { sql, parameters, views, others, now, files, describeOnly, memoryBytes, threads, spillDir } = request;
    const native = this.#native;
    const watch = watchSize(memoryBytes + UNCOUNTED_BYTES);
    const instance = await openInstance(native, {
      spillDir,
      memoryBytes,
      ...(threads !== undefined && { threads }),
      confinedTo: { files },
    });
    let session: Session;
    try {
      session = await Session.alone(native, instance, { key: "", main: views, others, now });
    } catch {
      // What is wrong with a condition of the grant is not for those who ask.
      clearInterval(watch);
      return { reply: "refused", refusal: { reason: "a table cannot be shown at this snapshot as it is granted" } };
    }
    const interrupter = new Interrupter(native, {});
    this.#started = { session, interrupter, watch, chunks: undefined };
    const run = new Run({
      native,
      session,
      interrupter,
      sql,
      nests: true,
      parameters,
      translate: async (error, prefixBytes) => {
        throw new Failed(error, prefixBytes);
      },
    });
    if (describeOnly) return { reply: "described", columns: await run.describe() };
    const { shape, chunks } = await run.stream();
    this.#started.chunks = chunks();
    return { reply: "started", shape };
  }

  async #next(): Promise<ScopeReply> {
    const batches: RecordBatch[] = [];
    for (let rows = 0; rows < REPLY_ROWS; ) {
      const { done, value } = (await this.#started?.chunks?.next()) ?? { done: true, value: undefined };
      if (done || value === undefined) break;
      batches.push(value);
      rows += value.length;
    }
    return batches.length === 0 ? { reply: "end" } : { reply: "rows", batch: concatBatches(batches) };
  }

  async #close(): Promise<void> {
    const started = this.#started;
    this.#started = undefined;
    if (!started) return;
    started.interrupter.stop(new Error("closed"));
    await started.interrupter.idle();
    started.interrupter[Symbol.dispose]();
    await started.session.close();
    clearInterval(started.watch);
  }
}

/** Ends this process once it has grown by more than so many bytes. */
function watchSize(bytes: number): NodeJS.Timeout {
  const limit = process.memoryUsage.rss() + bytes;
  return setInterval(() => {
    // Not `exit`, which waits for what DuckDB's threads do.
    if (process.memoryUsage.rss() > limit) process.kill(process.pid, "SIGKILL");
  }, WATCH_MS);
}

async function serve(): Promise<void> {
  const worker = new ScopeWorker(await loadNative());
  process.on("message", (request: ScopeRequest) => {
    void worker.answer(request).then((reply) => process.send?.(reply));
  });
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
}

void serve();
