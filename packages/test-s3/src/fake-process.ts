import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { S3Access, TestS3 } from "./access.js";
import { makeBucket } from "./bucket.js";
import type { FakeS3Options } from "./fake/fake-s3.js";

/** Options that can be handed to another process. */
export type FakeProcessOptions = Omit<FakeS3Options, "clock">;

/**
 * Starts a fake S3 in a process of its own, so that neither its time nor its memory is counted as the caller's: for
 * benchmarks. It needs the built package, has no script and no log, and is gone with this process at the latest.
 */
export async function startFakeS3Process(options: FakeProcessOptions = {}): Promise<TestS3> {
  const program = fileURLToPath(new URL("./fake-server.js", import.meta.url));
  const child = spawn(process.execPath, [program, JSON.stringify(options)], { stdio: ["pipe", "pipe", "inherit"] });
  const gone = once(child, "exit");
  const started = once(createInterface(child.stdout), "line");
  const first = await Promise.race([
    started,
    gone.then(([code]) => Promise.reject(new Error(`it ended with ${code}`))),
  ]);
  const access = JSON.parse(String(first[0])) as S3Access;
  // Its standard input is its life: it ends when that does, which a crash of this process brings about too.
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
  (child.stdout as unknown as { unref(): void }).unref();
  const stop = async (): Promise<void> => {
    child.ref();
    child.stdin.end();
    await gone;
  };
  return { ...access, makeBucket: () => makeBucket(access), stop, [Symbol.asyncDispose]: stop };
}
