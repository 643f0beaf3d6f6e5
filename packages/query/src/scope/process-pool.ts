/** The processes that run SQL from outside: started when needed, used again, ended when they misbehave. */

import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CatalogError, LimitError, QueryError } from "@eider/core";
import type { ScopeReply, ScopeRequest } from "./protocol.js";

/** Processes kept for the next query. */
const IDLE_PROCESSES = 2;
/** Milliseconds that a process has to end a statement before it is ended itself. */
const CLOSE_MS = 1000;

export interface ProcessPoolOptions {
  /** The process's entry. Default: the file beside this one, as built. */
  readonly entry: URL | undefined;
  /** Its working folder. */
  readonly cwd: string;
}

export class ProcessPool implements AsyncDisposable {
  readonly #options: ProcessPoolOptions;
  readonly #all = new Set<ScopeProcess>();
  readonly #idle: ScopeProcess[] = [];

  constructor(options: ProcessPoolOptions) {
    this.#options = options;
  }

  /**
   * A process for one statement; `giveBack` it.
   * @throws CatalogError `scope_process_missing`
   */
  take(): ScopeProcess {
    for (let known = this.#idle.pop(); known !== undefined; known = this.#idle.pop()) {
      if (known.alive) return known;
    }
    const { entry = builtEntry(), cwd } = this.#options;
    if (entry === undefined) {
      throw new CatalogError(
        "scope_process_missing",
        "SQL from outside runs in a process whose code is a file of its own, eider-scope.js, and that is not there: keep it " +
          "beside the bundle (see the documentation of bundling)",
      );
    }
    const started = new ScopeProcess(entry, cwd);
    this.#all.add(started);
    void started.ended.then(() => this.#all.delete(started));
    return started;
  }

  /** Waits until the process has ended the statement, or has been ended. */
  async giveBack(used: ScopeProcess): Promise<void> {
    if (!(await used.closeStatement(CLOSE_MS))) return;
    if (this.#idle.length >= IDLE_PROCESSES) return used.kill(new Error("not needed any more"));
    this.#idle.push(used);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#all].map((each) => each.kill(new QueryError("engine_closed", "the lake was closed"))));
  }
}

export class ScopeProcess {
  readonly #child: ChildProcess;
  /** Resolves when it is gone. */
  readonly ended: Promise<void>;
  #waiting: { resolve(reply: ScopeReply): void; reject(reason: unknown): void } | undefined;
  /** Why it was ended, or ended by itself. */
  #gone: { readonly reason: unknown } | undefined;

  constructor(entry: URL, cwd: string) {
    this.#child = fork(fileURLToPath(entry), {
      cwd,
      // Of the environment only what a program needs to start on Windows.
      env: process.platform === "win32" ? { SystemRoot: process.env.SystemRoot } : {},
      execArgv: ["--max-old-space-size=512"],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    this.#child.on("message", (reply: ScopeReply) => {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      this.#keepsAlive(false);
      waiting?.resolve(reply);
    });
    this.#keepsAlive(false);
    this.ended = new Promise((resolve) => {
      const end = (reason: unknown): void => {
        this.#gone ??= { reason };
        this.#waiting?.reject(this.#gone.reason);
        this.#waiting = undefined;
        resolve();
      };
      this.#child.on("error", end);
      this.#child.on("exit", (code, signal) => end(endOf(code, signal)));
    });
  }

  get alive(): boolean {
    return this.#gone === undefined;
  }

  /** @throws the reason for which the process was ended; LimitError `out_of_memory`; QueryError `engine_crashed` */
  request(request: ScopeRequest): Promise<ScopeReply> {
    if (this.#gone) return Promise.reject(this.#gone.reason);
    this.#keepsAlive(true);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#child.send(request, (error) => {
        if (error) this.kill(error).catch(() => undefined);
      });
    });
  }

  /** Ends it, whatever it does; what is asked of it fails for that reason. */
  async kill(reason: unknown): Promise<void> {
    this.#gone ??= { reason };
    this.#keepsAlive(true);
    this.#child.kill("SIGKILL");
    await this.ended;
  }

  /** Has it end its statement; false if it is gone, or took longer than that many milliseconds and was ended. */
  async closeStatement(timeoutMs: number): Promise<boolean> {
    if (this.#gone) {
      await this.ended;
      return false;
    }
    // A request that is not answered yet: nothing can be asked.
    if (this.#waiting) {
      await this.kill(new Error("the statement was given up"));
      return false;
    }
    const timer = setTimeout(() => void this.kill(new Error("the statement did not end")), timeoutMs);
    try {
      await this.request({ op: "close" });
      return true;
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whether the caller's process waits for this one; only while something is expected of it. */
  #keepsAlive(on: boolean): void {
    const change = on ? "ref" : "unref";
    this.#child[change]();
    this.#child.channel?.[change]();
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): Error {
  // It ends itself so when it has grown too large, as the system does when memory runs out.
  if (signal === "SIGKILL") {
    return new LimitError("out_of_memory", "the query needed more than its memory: read less at once");
  }
  return new QueryError("engine_crashed", `the query's process ended (${signal ?? `code ${code}`})`);
}

/** The entry beside the module that this one is in, as built or as bundled; undefined in sources. */
function builtEntry(): URL | undefined {
  for (const name of ["./eider-scope.js", "./eider-scope.mjs"]) {
    // A bundle in CommonJS has no URL of its own.
    if (!URL.canParse(name, import.meta.url)) return undefined;
    const url = new URL(name, import.meta.url);
    if (url.protocol === "file:" && existsSync(fileURLToPath(url))) return url;
  }
  return undefined;
}
