/** Where in an SQL text an error is: its line, and a mark below the place. */

import { displayWidth, printable } from "./text.js";

/** Columns an excerpt takes at the most. */
const WIDTH = 100;

/** @param position characters into the text */
export function sqlExcerpt(sql: string, position: number): string {
  const start = sql.lastIndexOf("\n", position - 1) + 1;
  const end = sql.indexOf("\n", start);
  const line = sql.slice(start, end < 0 ? sql.length : end).trimEnd();
  const label = `${sql.slice(0, start).split("\n").length} | `;
  const at = Math.min(position - start, line.length);
  // A long line is shown around the place.
  const room = WIDTH - label.length;
  const first = line.length <= room ? 0 : Math.max(0, Math.min(at - Math.floor(room / 2), line.length - room));
  const lead = first > 0 ? "…" : "";
  const before = lead + show(line.slice(first, at));
  const after = show(line.slice(at, first + room));
  const mark = " ".repeat(label.length + displayWidth(before));
  return `${label}${before}${after}${first + room < line.length ? "…" : ""}\n${mark}^`;
}

function show(text: string): string {
  return printable(text.replaceAll("\t", " "));
}
