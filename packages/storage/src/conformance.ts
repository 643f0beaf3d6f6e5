/**
 * The contract of `ObjectStore` as a function that runs with any test runner or none. It needs nothing but the store:
 *
 * ```ts
 * const report = await runConformance(async () => new MyStore());
 * if (!report.ok) throw new Error(formatReport(report));
 * ```
 */
import type { CheckScale, ConformanceCheck } from "./conformance/check.js";
import { deleteChecks } from "./conformance/delete-checks.js";
import { getChecks } from "./conformance/get-checks.js";
import { keyChecks } from "./conformance/key-checks.js";
import { listChecks } from "./conformance/list-checks.js";
import { putChecks } from "./conformance/put-checks.js";
import { replaceChecks } from "./conformance/replace-checks.js";
import { streamChecks } from "./conformance/stream-checks.js";
import type { ObjectStore } from "./store.js";

export type { CheckScale, ConformanceCheck } from "./conformance/check.js";

/** Every check, for runners that want one test for each: see `runCheck`. */
export const conformanceChecks: readonly ConformanceCheck[] = [
  ...putChecks,
  ...replaceChecks,
  ...streamChecks,
  ...getChecks,
  ...listChecks,
  ...keyChecks,
  ...deleteChecks,
];

/** Which checks run, and how hard. */
export interface ConformanceOptions {
  /** Default: all. */
  readonly include?: (name: string) => boolean;
  /** Fewer rounds of races and fewer objects. Default false. */
  readonly fast?: boolean;
  /** A check that takes longer has failed: some faults hang. Milliseconds for each, default 60,000. */
  readonly timeoutMs?: number;
}

/** How one check went. One that does not apply to what the store can do is `ok` and `skipped`. */
export interface ConformanceResult {
  readonly name: string;
  readonly ok: boolean;
  readonly skipped: boolean;
  readonly error?: unknown;
}

export interface ConformanceReport {
  /** All checks that ran are ok, and at least one ran. */
  readonly ok: boolean;
  readonly results: readonly ConformanceResult[];
}

const FULL: CheckScale = { rounds: 25, many: 1100 };
const FAST: CheckScale = { rounds: 5, many: 130 };

/**
 * Runs the checks one after the other, each on a store of its own, which it closes.
 * @param makeStore makes an empty store
 */
export async function runConformance(
  makeStore: () => Promise<ObjectStore>,
  options: ConformanceOptions = {},
): Promise<ConformanceReport> {
  const include = options.include ?? (() => true);
  const results: ConformanceResult[] = [];
  for (const check of conformanceChecks) {
    if (include(check.name)) results.push(await runCheck(check, makeStore, options));
  }
  return { ok: results.every(({ ok }) => ok) && results.some(({ skipped }) => !skipped), results };
}

/** Runs one check on a new store and closes it. It does not throw: the result says how it went. */
export async function runCheck(
  check: ConformanceCheck,
  makeStore: () => Promise<ObjectStore>,
  options: Omit<ConformanceOptions, "include"> = {},
): Promise<ConformanceResult> {
  const { name, needs } = check;
  try {
    const store = await makeStore();
    try {
      if (needs !== undefined && !store.capabilities[needs]) return { name, ok: true, skipped: true };
      await withinTime(check.run(store, options.fast ? FAST : FULL), options.timeoutMs ?? 60_000);
    } finally {
      await store[Symbol.asyncDispose]();
    }
    return { name, ok: true, skipped: false };
  } catch (error) {
    return { name, ok: false, skipped: false, error };
  }
}

/** A report as text: what failed and what was skipped, then the counts. */
export function formatReport(report: ConformanceReport): string {
  const lines: string[] = [];
  for (const { name, ok, skipped, error } of report.results) {
    if (!ok) lines.push(`failed: ${name}\n  ${error instanceof Error ? error.message : String(error)}`);
    else if (skipped) lines.push(`skipped: ${name}`);
  }
  const count = (holds: (result: ConformanceResult) => boolean): number => report.results.filter(holds).length;
  const passed = count(({ ok, skipped }) => ok && !skipped);
  const skipped = count((result) => result.skipped);
  lines.push(`${passed} passed, ${count(({ ok }) => !ok)} failed, ${skipped} skipped`);
  return lines.join("\n");
}

async function withinTime(running: Promise<void>, milliseconds: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${milliseconds} ms`)), milliseconds);
  });
  try {
    await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
  }
}
