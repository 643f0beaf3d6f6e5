import type { S3Access } from "@eider/test-s3";
import { reportUnavailable } from "./unavailable.js";

/** Where the run's real S3 can be asked for: `real-s3-setup.ts` listens there. */
export const REAL_S3_VARIABLE = "EIDER_REAL_S3";

export type RealS3Answer =
  | { readonly access: S3Access }
  /** The command that would bring what it needs. */
  | { readonly missing: string }
  | { readonly error: string };

/**
 * The real S3 of this test run, shared by all files; the first who asks waits for its start. Undefined where it cannot run,
 * which is reported under the name of the suite: `const s3 = await realS3("…")`, then `describe.runIf(s3)`.
 */
export async function realS3(suite: string): Promise<S3Access | undefined> {
  const answer = (await (await fetch(process.env[REAL_S3_VARIABLE]!)).json()) as RealS3Answer;
  if ("error" in answer) throw new Error(answer.error);
  if ("access" in answer) return answer.access;
  reportUnavailable(suite, "it needs a real S3 server, which Debian has", answer.missing);
  return undefined;
}
