/** Text in parts, each of whole rows. */

import { type CsvOptions, createJsonCutter, InvalidInputError, type TextPart } from "@eider/core";
import { createCutter, frontBytes } from "@eider/core/ranges";
import type { BytesInput } from "../commit/pass.js";
import type { AppendOptions, Format } from "../options.js";
import { FORMAT_BYTES } from "./format.js";
import type { InputParts, PartsOptions } from "./input-parts.js";
import { BYTES, type Cuts, readOnce, SourceParts } from "./parts.js";
import { spoolBytes } from "./spool.js";

/** What tells the format of an input and how to cut it. */
export const FRONT_BYTES: number = Math.max(FORMAT_BYTES, frontBytes("csv"));

/** How a text is cut, and how its parts are to be read. */
interface TextCuts {
  readonly cuts: Cuts<Uint8Array> & { readonly part: TextPart | undefined };
  /** Of the part at that place: only the first of a CSV text has the header. */
  options(place: TextPart | undefined): Pick<AppendOptions, "format" | "csv">;
}

/**
 * A part ends with the row that reaches `partBytes`.
 * @param text its front, and all of it
 * @throws InvalidInputError `not_divisible`
 */
export function openTextParts(
  { name, totalBytes }: BytesInput,
  format: Format,
  text: { readonly head: Uint8Array; readonly rest: AsyncIterable<Uint8Array> },
  { partBytes, tempFolder, pace }: PartsOptions,
): InputParts {
  const { cuts, options } = textCuts(format, pace.append.csv, text.head, partBytes, name);
  const parts = new SourceParts(text.rest, BYTES, cuts);
  // Long parts are for worker threads from their front on.
  const expected = totalBytes === undefined ? undefined : Math.min(totalBytes, partBytes);
  return {
    more: () => parts.more(),
    next(known) {
      const part = cuts.part;
      const bytes = known ? readOnce(parts.read()) : spoolBytes(parts.read(), tempFolder);
      return {
        input: { kind: "bytes", bytes, name, totalBytes: expected, ...(part && { part }) },
        options: options(part),
      };
    },
    [Symbol.asyncDispose]: () => parts[Symbol.asyncDispose](),
  };
}

function textCuts(
  given: Format,
  givenCsv: CsvOptions | undefined,
  head: Uint8Array,
  partBytes: number,
  name: string | undefined,
): TextCuts {
  const csv = given === "tsv" ? { delimiter: "\t", ...givenCsv } : givenCsv;
  const format = given === "tsv" ? "csv" : given;
  const problem = indivisible(format, csv, head);
  if (problem !== undefined) throw notDivisible(problem, name);
  // As an append reads NDJSON that begins with an array.
  if (format === "json" || (format === "ndjson" && isArray(head))) {
    return { cuts: createJsonCutter(partBytes), options: () => ({ format: "json" }) };
  }
  const complete = head.length < FRONT_BYTES;
  const limits = { lines: Number.POSITIVE_INFINITY, bytes: partBytes };
  const cutter = createCutter(format as "ndjson" | "csv", csv, head, complete, limits);
  if (!cutter && !complete) throw notDivisible(`the first ${FRONT_BYTES} bytes do not tell its columns`, name);
  const later = { format, ...(cutter?.csv && { csv: cutter.csv }) };
  const delimiter = cutter?.csv?.delimiter;
  // A short first part might not tell the delimiter that the text does.
  const first = { format, ...((csv || delimiter) && { csv: { ...csv, ...(delimiter && { delimiter }) } }) };
  // A short text without columns is one part, of which the append says what is wrong.
  const uncut = { part: undefined, begin() {}, next: () => -1 };
  return { cuts: cutter ?? uncut, options: (place) => (place ? later : first) };
}

/** Why a text cannot be cut; undefined if it can. */
function indivisible(format: Format, csv: CsvOptions | undefined, head: Uint8Array): string | undefined {
  const encoding = csv?.encoding ?? "utf-8";
  if (encoding !== "utf-8" || head[0]! >= 0xfe) return "text in another encoding than UTF-8 is read in one";
  if (format !== "csv" || csv === undefined) return undefined;
  if (csv.trim) return "CSV to be trimmed is read in one";
  if (csv.escape !== undefined && csv.escape !== (csv.quote ?? '"')) return "CSV with an escape is read in one";
  return undefined;
}

/** Whether the first character, behind a byte-order mark and blanks, begins an array. */
function isArray(head: Uint8Array): boolean {
  return /^\u{feff}?[ \t\r\n]*\[/u.test(new TextDecoder("utf-8", { ignoreBOM: true }).decode(head.subarray(0, 4096)));
}

function notDivisible(reason: string, name: string | undefined): InvalidInputError {
  return new InvalidInputError(
    "not_divisible",
    `${reason}: append it whole (append takes any size), or convert it to NDJSON or CSV`,
    name === undefined ? {} : { subject: name },
  );
}
