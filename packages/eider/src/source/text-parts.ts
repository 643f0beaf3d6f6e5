/** Text in parts, each of whole rows, read once from its front to its end. */

import { type CsvOptions, InvalidInputError, type TextPart } from "@eider/core";
import { createCutter, frontBytes } from "@eider/core/ranges";
import { type BytesInput, bytesOf, type PaceOptions, type ReadCounters } from "../commit/pass.js";
import type { AppendOptions, Format } from "../options.js";
import { peek } from "./decompress.js";
import { FORMAT_BYTES, recogniseFormat } from "./format.js";
import type { Input } from "./input.js";
import { BYTES, type Cuts, SourceParts } from "./parts.js";

/** What tells the format and how to cut it. */
const FRONT_BYTES = Math.max(FORMAT_BYTES, frontBytes("csv"));

const NOWHERE: Cuts<Uint8Array> = { begin() {}, next: () => -1 };

/** The parts of a text, and how each is to be read. */
export interface TextParts {
  readonly parts: SourceParts<Uint8Array>;
  /** Of the part that begins now; the first has none. */
  place(): TextPart | undefined;
  /** Of the part at that place: only the first has the header. */
  options(place: TextPart | undefined): Pick<AppendOptions, "format" | "csv">;
}

/**
 * @param partBytes a part ends with the row that reaches so many bytes, decompressed
 * @throws InvalidInputError `not_divisible`, `unknown_format`
 */
export async function openTextParts(
  input: BytesInput,
  partBytes: number,
  options: PaceOptions,
  counters: ReadCounters,
): Promise<TextParts> {
  const { head, rest } = await peek(bytesOf(input, options, counters), FRONT_BYTES);
  const given = options.append.format ?? recogniseFormat(head, input.name, input.mediaType);
  const csv = given === "tsv" ? { delimiter: "\t", ...options.append.csv } : options.append.csv;
  const format = given === "tsv" ? "csv" : given;
  const complete = head.length < FRONT_BYTES;
  const problem = indivisible(format, csv, head);
  if (problem !== undefined) throw notDivisible(problem, input);
  const limits = { lines: Number.POSITIVE_INFINITY, bytes: partBytes };
  const cutter = createCutter(format as "ndjson" | "csv", csv, head, complete, limits);
  if (!cutter && !complete) throw notDivisible(`the first ${FRONT_BYTES} bytes do not tell its columns`, input);
  // A short text without columns is one part, of which the append says what is wrong.
  const parts = new SourceParts(rest, BYTES, cutter ?? NOWHERE);
  const later = { format, ...(cutter?.csv && { csv: cutter.csv }) };
  const delimiter = cutter?.csv?.delimiter;
  // A short first part might not tell the delimiter that the text does.
  const first = { format, ...((csv || delimiter) && { csv: { ...csv, ...(delimiter && { delimiter }) } }) };
  return { parts, place: () => cutter?.part, options: (place) => (place ? later : first) };
}

/** Why a text cannot be cut; undefined if it can. */
function indivisible(format: Format, csv: CsvOptions | undefined, head: Uint8Array): string | undefined {
  if (format === "parquet" || format === "arrow") return `${format} input is read in one`;
  if (format === "json" || isArray(head)) return "JSON other than a row per line is read in one";
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

function notDivisible(reason: string, { name }: Extract<Input, { kind: "bytes" }>): InvalidInputError {
  return new InvalidInputError(
    "not_divisible",
    `${reason}: append it whole (append takes any size), or convert it to NDJSON or CSV`,
    name === undefined ? {} : { subject: name },
  );
}
