/**
 * Rejects in another try: their texts, in the order in which they were committed, are the input of an append. Its entry
 * also marks them, so that each is taken once, whoever tries and whatever fails. The batch id is made of their ids: the
 * same rejects are the same batch.
 */

import { createHash } from "node:crypto";
import { compareRejectIds, type ListedReject, rejectPlace } from "@eider/catalog";
import { BatchConflictError, InvalidInputError, LimitError, NotFoundError } from "@eider/core";
import type { AppendOptions, AppendResult, ReplayOptions } from "../options.js";
import { namedRejects } from "../reject-pages.js";
import type { Input } from "../source/input.js";
import { interruptible } from "../source/interruptible.js";
import { spoolBytes, spoolRows } from "../source/spool.js";
import { type AppendContext, appendInput, duplicate, findKnown, findTable } from "./append.js";
import type { TablePlan } from "./table-plan.js";

/** Most rejects of one replay. */
const MAX_REJECTS = 10_000;
/** A text that is longer may have been cut: that is done at 64 KiB, but not within a character. */
const WHOLE_BYTES = 64 * 1024 - 4;

type Texts = (page: readonly ListedReject[]) => Promise<string[]>;

/**
 * @throws NotFoundError `table_not_found`, `reject_not_found`
 * @throws BatchConflictError `reject_replayed`; `batch_conflict` where the same rejects were replayed with other texts
 * @throws InvalidInputError `reject_purged`, `reject_incomplete`, `reject_lines`, `replay_rows`, `bad_replay`, and as an append
 */
export async function replay(
  context: AppendContext,
  plan: TablePlan,
  ids: readonly string[],
  options: ReplayOptions,
): Promise<AppendResult> {
  options.signal?.throwIfAborted();
  const replays = inOrder(ids);
  const append = appendOptions(plan, options);
  const { catalog, tempFolder } = context;
  const batch = { id: replayBatchId(replays), replays };
  await catalog.refresh();
  const table = await findTable(catalog, plan.name);
  if (!table) throw new NotFoundError("table_not_found", `there is no table ${plan.name}`, { subject: plan.name });
  const named = { id: table.id, name: plan.name };
  const known = await findKnown(catalog, table, batch);
  if (known) {
    // Without its texts nothing is left to compare it with.
    for await (const page of namedRejects(catalog, named, replays)) {
      if (page.some(({ purgedIn }) => purgedIn !== undefined)) return duplicate(known.receipt);
    }
  }
  const texts: Texts = (page) => textsOf(page, batch.id, options);
  const pages = namedRejects(catalog, named, replays);
  const input: Input = plan.validator
    ? { kind: "rows", rows: spoolRows(interruptible(rowsOf(pages, texts), options.signal), tempFolder) }
    : {
        kind: "bytes",
        bytes: spoolBytes(interruptible(linesOf(pages, texts, append.format !== "ndjson"), options.signal), tempFolder),
        name: undefined,
        totalBytes: undefined,
      };
  return appendInput(context, plan, input, batch, append);
}

/** What names a replay, so that whoever tries it again tries the same batch. */
function replayBatchId(replays: readonly string[]): string {
  return `replay:${createHash("sha256").update(replays.join("\n")).digest("hex")}`;
}

function inOrder(ids: readonly string[]): string[] {
  if (!Array.isArray(ids)) {
    throw new InvalidInputError("bad_replay", "a replay takes an array of ids: table.rejects() tells them");
  }
  const wrong = ids.find((id) => typeof id !== "string" || !rejectPlace(id));
  if (wrong !== undefined || ids.length === 0) {
    const what = wrong === undefined ? "names none" : `names ${JSON.stringify(wrong)}, which is not the id of a reject`;
    throw new InvalidInputError("bad_replay", `the replay ${what}: table.rejects() tells their ids`, {
      ...(wrong !== undefined && { subject: String(wrong) }),
    });
  }
  const found = [...new Set(ids)].sort(compareRejectIds);
  if (found.length > MAX_REJECTS) {
    throw new LimitError(
      "replay_too_large",
      `the replay names ${found.length} rejects: replay at most ${MAX_REJECTS} at a time`,
    );
  }
  return found;
}

function appendOptions(plan: TablePlan, { format = "ndjson", csv, map: _, ...options }: ReplayOptions): AppendOptions {
  if (format === "ndjson") return { ...options, format };
  if (plan.validator) {
    throw new InvalidInputError(
      "bad_option",
      `the table's validator looks at rows, which ${format} has none of: give a map that makes the texts JSON`,
      { subject: "format" },
    );
  }
  if (!Array.isArray(csv?.header)) {
    throw new InvalidInputError(
      "bad_option",
      "rejects of CSV have no header with them: name the columns of the texts, in their order, by csv.header",
      { subject: "header" },
    );
  }
  // Rows that were odd enough to be rejected are nothing to find a delimiter by.
  const delimiter = format === "tsv" ? "\t" : ",";
  return { ...options, format, csv: { delimiter, ...csv } };
}

/** What is to be read for each reject. */
async function textsOf(
  page: readonly ListedReject[],
  batchId: string,
  { map, format }: ReplayOptions,
): Promise<string[]> {
  const texts: string[] = [];
  for (const reject of page) {
    const { id, replayedBy, purgedIn, raw } = reject;
    if (replayedBy !== undefined && replayedBy !== batchId) {
      throw new BatchConflictError(
        "reject_replayed",
        `the reject ${id} was replayed before, by ${JSON.stringify(replayedBy)}: leave it out`,
        { subject: id },
      );
    }
    if (purgedIn !== undefined) {
      throw refused("reject_purged", id, "was purged: leave it out, or append the row itself");
    }
    if (!map && raw === "") throw refused("reject_incomplete", id, "was not kept, for its input had none: give a map");
    if (!map && Buffer.byteLength(raw) > WHOLE_BYTES) {
      throw refused("reject_incomplete", id, "is as long as texts are kept, and may have been cut: give a map");
    }
    const text = map ? await map(raw, reject) : raw;
    if (typeof text !== "string") throw refused("bad_replay", id, `was mapped to ${kindOf(text)}, not to a text`);
    if (format !== undefined && format !== "ndjson" && /[\r\n]/.test(text)) {
      const advice = "an open quote in one text would take the next ones with it; map it to JSON, with format ndjson";
      throw refused("reject_lines", id, `has several lines, and as CSV ${advice}`);
    }
    texts.push(text);
  }
  return texts;
}

function refused(code: string, id: string, reason: string): InvalidInputError {
  return new InvalidInputError(code, `the text of reject ${id} ${reason}`, { subject: id });
}

function kindOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}

/** A line each. Line ends in JSON are space between its parts or wrong: a tab is as much the one as the other. */
async function* linesOf(
  pages: AsyncIterable<readonly ListedReject[]>,
  texts: Texts,
  asTheyAre: boolean,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  for await (const page of pages) {
    const lines = (await texts(page)).map((text) => `${asTheyAre ? text : text.replace(/[\r\n]/g, "\t")}\n`);
    yield encoder.encode(lines.join(""));
  }
}

/** Rows, which a validator looks at as it did when they came. Text that is no JSON is left to it too: no row is a text. */
async function* rowsOf(
  pages: AsyncIterable<readonly ListedReject[]>,
  texts: Texts,
): AsyncGenerator<readonly unknown[], void, undefined> {
  for await (const page of pages) yield (await texts(page)).map(parsed);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
