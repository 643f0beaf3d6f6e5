/** What all writers have in common: one call after the other, and an end at the first failure. */

import { type ArrowLike, InvalidInputError, isArrowLike, StoreError } from "@eider/core";
import { interruptible } from "../source/interruptible.js";

/** Rows, one or many, or Arrow data. */
export type WriterInput<R> = R | readonly R[] | ArrowLike;

/** Where a writer's rows come from: a list, a generator, a Node.js or web stream of rows, arrays of rows or Arrow data. */
export type WriterSource<R> = Iterable<WriterInput<R>> | AsyncIterable<WriterInput<R>> | ReadableStream<WriterInput<R>>;

export interface WriterProgress {
  /** Rows taken. */
  readonly rows: number;
  /** As many rows from the front as are durable. */
  readonly acknowledgedRows: number;
  readonly elapsedMs: number;
}

/** Rows that {@link RowWriter.writeAll} gathers from a source that gives them one by one. */
const CHUNK_ROWS = 1000;
/** Milliseconds for which it holds them back. */
const CHUNK_MS = 10;

export interface RowWriterOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: WriterProgress) => void;
}

/** `T` is what closing returns. */
export abstract class RowWriter<R, T> implements AsyncDisposable {
  readonly #options: RowWriterOptions;
  readonly #abort = new AbortController();
  readonly #started = performance.now();
  /** Ends when all calls so far have. */
  #tail: Promise<unknown> = Promise.resolve();
  /** `told`: a caller has seen the error itself. */
  #failure: { readonly error: unknown; told: boolean } | undefined;
  #cleanUp: Promise<void> | undefined;
  #closed: Promise<T> | undefined;
  /** Closed, or failed. */
  #ended = false;
  #writable: WritableStream<WriterInput<R>> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RowWriterOptions) {
    this.#options = options;
    const { signal } = options;
    // Not before the writer is whole.
    if (signal?.aborted) queueMicrotask(this.#onAbort);
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Rows taken so far. */
  abstract get rows(): number;

  /** As many rows from the front as are durable: they need not be written again, whatever happens. */
  abstract get acknowledgedRows(): number;

  /**
   * Takes rows. Await it: it answers when there is room for more. The rows are durable only once they are acknowledged.
   * A writer that has failed takes no more.
   * @throws InvalidInputError `rejected_rows`, naming the first rows at fault; `bad_source`
   * @throws StoreError `writer_failed`: it failed before, for the reason in `cause`; `writer_closed`
   */
  async write(input: WriterInput<R>): Promise<void> {
    const taken = takeable(input);
    await this.#run(() => ("numRows" in taken ? this.takeArrow(taken) : this.takeRows(taken)));
  }

  /** Takes all rows of a source, as fast as there is room for them. It does not close the writer. */
  async writeAll(source: WriterSource<R>): Promise<void> {
    this.#check();
    const inputs = interruptible(iterableOf(source), this.#abort.signal);
    let chunk: R[] = [];
    let since = 0;
    let idle: NodeJS.Timeout | undefined;
    const flush = async (): Promise<void> => {
      const rows = chunk;
      chunk = [];
      clearTimeout(idle);
      if (rows.length > 0) await this.write(rows);
    };
    try {
      for await (const input of inputs) {
        if (Array.isArray(input) || !isRow(input)) {
          await flush();
          await this.write(input);
          continue;
        }
        if (chunk.push(input as R) === 1) {
          since = performance.now();
          // The source may have nothing more to give for a long time. An error ends the writer, and with it the loop.
          idle = setTimeout(() => void flush().catch(() => {}), CHUNK_MS);
        }
        if (chunk.length >= CHUNK_ROWS || performance.now() - since >= CHUNK_MS) await flush();
      }
      await flush();
    } catch (error) {
      clearTimeout(idle);
      // A source that fails in the middle: what follows it is not known, so nothing may look complete.
      this.#fail(error, true);
      await this.#cleanUp;
      throw error;
    }
  }

  /** This writer as the end of a web stream pipe. Closing it closes the writer, whose result a further `close()` gives. */
  get writable(): WritableStream<WriterInput<R>> {
    this.#writable ??= new WritableStream<WriterInput<R>>({
      write: (input) => this.write(input),
      close: async () => {
        await this.close();
      },
      abort: (reason) => this.abort(reason),
    });
    return this.#writable;
  }

  /** Makes all rows so far durable. Nothing more can be written. Further calls give the same result. */
  close(): Promise<T> {
    this.#closed ??= this.#run(async () => {
      const result = await this.finish();
      this.#end();
      return result;
    });
    return this.#closed;
  }

  /** Gives up what is not durable yet: nothing of it becomes visible. Ends when nothing is under way any more. */
  async abort(reason: unknown = new DOMException("the writer was given up", "AbortError")): Promise<void> {
    this.#fail(reason, true);
    await Promise.all([this.#cleanUp, this.#tail]);
  }

  /** Closes nothing: a writer that was not closed is given up. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.abort();
  }

  /** Aborted with the writer. */
  protected get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** When {@link onDue} wants to be called, in milliseconds from now. */
  protected get dueInMs(): number | undefined {
    return undefined;
  }

  protected async onDue(): Promise<void> {}

  protected abstract takeRows(rows: readonly R[]): Promise<void>;
  protected abstract takeArrow(source: ArrowLike): Promise<void>;
  /** All rows become durable. */
  protected abstract finish(): Promise<T>;
  /** Ends what is under way, which the signal has told already, and removes what is left of it. Must not throw. */
  protected abstract giveUp(reason: unknown): Promise<void>;

  /** Something that users call, in turn. */
  protected inTurn<U>(work: () => Promise<U>): Promise<U> {
    if (this.#closed) return Promise.reject(closedError());
    return this.#run(work);
  }

  protected report(): void {
    this.#options.onProgress?.({
      rows: this.rows,
      acknowledgedRows: this.acknowledgedRows,
      elapsedMs: performance.now() - this.#started,
    });
  }

  #run<U>(work: () => Promise<U>): Promise<U> {
    const closing = this.#closed;
    const result = this.#tail.then(async () => {
      if (closing) throw closedError();
      this.#check();
      try {
        const value = await work();
        if (this.#failure) throw this.#failure.error;
        return value;
      } catch (error) {
        this.#fail(error, true);
        // Whoever hears of the failure finds nothing of it under way any more.
        await this.#cleanUp;
        throw error;
      } finally {
        this.#arm();
      }
    });
    this.#tail = result.catch(() => {});
    return result;
  }

  /** The first caller after a failure that came from elsewhere gets its error, later ones are told that there was one. */
  #check(): void {
    const failure = this.#failure;
    if (!failure) return;
    if (!failure.told) {
      failure.told = true;
      throw failure.error;
    }
    throw new StoreError(
      "writer_failed",
      "this writer failed before and takes no more: see the cause, and write what was not acknowledged with a new one",
      { cause: failure.error },
    );
  }

  #fail(error: unknown, told: boolean): void {
    if (this.#failure) {
      this.#failure.told ||= told;
      return;
    }
    if (this.#ended) return;
    this.#failure = { error, told };
    this.#end();
    this.#abort.abort(error);
    this.#cleanUp = this.giveUp(error);
  }

  #end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => this.#fail(this.#options.signal!.reason, false);

  /** An unclosed writer keeps no process alive. */
  #arm(): void {
    clearTimeout(this.#timer);
    const due = this.#ended ? undefined : this.dueInMs;
    if (due === undefined) return;
    this.#timer = setTimeout(() => {
      if (this.#ended || this.#closed) return;
      // The error is kept for the next caller.
      this.#run(() => this.onDue()).catch(() => {
        if (this.#failure) this.#failure.told = false;
      });
    }, due).unref();
  }
}

function closedError(): StoreError {
  return new StoreError("writer_closed", "this writer is closed: open a new one to write more");
}

function takeable<R>(input: WriterInput<R>): readonly R[] | ArrowLike {
  if (Array.isArray(input)) return input as readonly R[];
  if (typeof input !== "object" || input === null || input instanceof Uint8Array) {
    throw new InvalidInputError(
      "bad_source",
      "a writer takes rows: objects, arrays of them, or Arrow data; bytes and text are for table.append",
    );
  }
  return isArrowLike(input) ? input : [input as R];
}

function isRow(input: unknown): boolean {
  return typeof input === "object" && input !== null && !(input instanceof Uint8Array) && !isArrowLike(input);
}

function iterableOf<T>(source: Iterable<T> | AsyncIterable<T> | ReadableStream<T>): AsyncIterable<T> {
  if (typeof source === "object" && source !== null) {
    if (Symbol.asyncIterator in source) return source as AsyncIterable<T>;
    if (Symbol.iterator in source) return fromIterable(source);
    if ("getReader" in source) return fromStream(source);
  }
  throw new InvalidInputError("bad_source", "writeAll takes a list, a generator or a stream of rows");
}

async function* fromIterable<T>(source: Iterable<T>): AsyncIterable<T> {
  yield* source;
}

/** For web streams without iteration, as browsers and polyfills have them. */
async function* fromStream<T>(stream: ReadableStream<T>): AsyncIterable<T> {
  const reader = stream.getReader();
  let finished = false;
  try {
    for (;;) {
      const next = await reader.read();
      if (next.done) break;
      yield next.value;
    }
    finished = true;
  } finally {
    if (!finished) await reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}
