/** Rows through a validator, before anything else looks at them. */

import { InvalidInputError, RefusedRow, type StandardIssue, type StandardSchema } from "@eider/core";

/** Issues of one row that its reason names, and the length at which that is cut. */
const NAMED_ISSUES = 3;
const MAX_REASON_LENGTH = 500;

type Outcome = Awaited<ReturnType<StandardSchema["~standard"]["validate"]>>;

/**
 * What the validator makes of each row; those that it refuses become {@link RefusedRow}. Asynchronous answers are
 * awaited together, and an answer that is there already costs no turn of the event loop.
 * @throws InvalidInputError `validator_failed` where the validator itself throws
 * @throws the signal's reason, also while an answer is awaited
 */
export async function validateRows(
  validator: StandardSchema,
  rows: readonly unknown[],
  signal: AbortSignal | undefined,
): Promise<readonly unknown[]> {
  const { validate } = validator["~standard"];
  const outcomes: (Outcome | Promise<Outcome>)[] = [];
  try {
    for (const row of rows) outcomes.push(validate(row));
    const settled = outcomes.some(isPromise)
      ? await unlessAborted(Promise.all(outcomes), signal)
      : (outcomes as Outcome[]);
    return settled.map((outcome, i) => (outcome.issues ? refused(rows[i], outcome.issues) : outcome.value));
  } catch (cause) {
    // Answers that are still to come have nobody left who waits for them.
    void Promise.allSettled(outcomes);
    signal?.throwIfAborted();
    throw new InvalidInputError(
      "validator_failed",
      "the validator of the table threw instead of answering: see the cause; nothing was committed",
      { cause },
    );
  }
}

function isPromise(outcome: Outcome | Promise<Outcome>): outcome is Promise<Outcome> {
  return "then" in outcome && typeof outcome.then === "function";
}

function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return answer;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    answer.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

function refused(row: unknown, issues: readonly StandardIssue[]): RefusedRow {
  const named = issues.slice(0, NAMED_ISSUES).map(issueText);
  if (issues.length > NAMED_ISSUES) named.push(`and ${issues.length - NAMED_ISSUES} more`);
  return new RefusedRow(
    row,
    "invalid_row",
    named.join("; ").slice(0, MAX_REASON_LENGTH) || "is refused by the validator",
  );
}

/** `items[0].sku: …` */
function issueText({ path = [], message }: StandardIssue): string {
  let place = "";
  for (const part of path) {
    const key = typeof part === "object" ? part.key : part;
    if (typeof key === "number") place += `[${key}]`;
    else place += place === "" ? String(key) : `.${String(key)}`;
  }
  return place === "" ? message : `${place}: ${message}`;
}
