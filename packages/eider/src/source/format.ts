/** Which format bytes are in: by content first, then by file name, then by media type. */

import { InvalidInputError } from "@eider/core";
import type { Format } from "../options.js";

/** Bytes of (decompressed) input needed to decide. */
export const FORMAT_BYTES: number = 64 * 1024;

const EXTENSIONS: ReadonlyMap<string, Format> = new Map([
  ["csv", "csv"],
  ["tsv", "tsv"],
  ["ndjson", "ndjson"],
  ["jsonl", "ndjson"],
  ["json", "json"],
  ["geojson", "json"],
  ["parquet", "parquet"],
  ["arrow", "arrow"],
  ["arrows", "arrow"],
  ["feather", "arrow"],
  ["ipc", "arrow"],
]);

/** What content does not show. All other formats it does. */
const MEDIA_TYPES: ReadonlyMap<string, Format> = new Map([
  ["text/csv", "csv"],
  ["application/csv", "csv"],
  ["text/tab-separated-values", "tsv"],
]);

/**
 * @param head the first bytes, decompressed
 * @param name a file name or URL path, if known; `.gz` and `.zst` at its end are passed over
 * @param mediaType of a `Response` or `Blob`, if known: `text/csv; charset=utf-8`
 * @throws InvalidInputError `unknown_format`
 */
export function recogniseFormat(head: Uint8Array, name: string | undefined, mediaType: string | undefined): Format {
  if (startsWith(head, "PAR1")) return "parquet";
  if (startsWith(head, "ARROW1")) return "arrow";
  // An Arrow IPC stream begins with a continuation marker (format spec, "Encapsulated message format").
  if (head.length >= 8 && head.subarray(0, 4).every((byte) => byte === 0xff)) return "arrow";
  const extension = /\.([a-z0-9]+)$/i.exec(name?.replace(/\.(gz|zst)$/i, "") ?? "")?.[1]?.toLowerCase();
  const typed = MEDIA_TYPES.get(/^[^;\s]*/.exec(mediaType ?? "")?.[0].toLowerCase() ?? "");
  const named = EXTENSIONS.get(extension ?? "") ?? typed;
  const text = recogniseJson(head);
  if (named === "csv" || named === "tsv" || named === "ndjson" || named === "json") {
    // Newline-delimited rows under a `.json` name are common, and their lines give better errors.
    return named === "json" && text === "ndjson" ? "ndjson" : named;
  }
  if (text !== undefined) return text;
  if (head.length === 0) return "ndjson";
  if (named !== undefined) {
    throw new InvalidInputError("unknown_format", `the name says ${named} but the content does not begin like it`, {
      ...(name === undefined ? {} : { subject: name }),
    });
  }
  throw new InvalidInputError(
    "unknown_format",
    "cannot tell the format of the input: pass format (ndjson, json, csv, tsv, parquet or arrow)",
    { ...(name === undefined ? {} : { subject: name }) },
  );
}

/** `[` is a JSON array; `{` is NDJSON when the first line is a whole object by itself, else one JSON value. */
function recogniseJson(head: Uint8Array): "ndjson" | "json" | undefined {
  let at = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0;
  while (head[at] === 0x20 || head[at] === 0x09 || head[at] === 0x0a || head[at] === 0x0d) at++;
  if (head[at] === 0x5b) return "json";
  if (head[at] !== 0x7b) return undefined;
  const newline = head.indexOf(0x0a, at);
  let end = newline < 0 ? head.length : newline;
  while (end > at && (head[end - 1] === 0x20 || head[end - 1] === 0x09 || head[end - 1] === 0x0d)) end--;
  if (newline < 0) return head.length < FORMAT_BYTES ? "ndjson" : "json";
  return head[end - 1] === 0x7d ? "ndjson" : "json";
}

function startsWith(bytes: Uint8Array, text: string): boolean {
  return bytes.length >= text.length && [...text].every((char, i) => bytes[i] === char.charCodeAt(0));
}
