/** Rows under headers; where a terminal is too narrow for them, one value a line. */

import { cut, displayWidth, printable } from "./text.js";

export type Cell = string | number | bigint | null | undefined;

export interface TableOptions {
  /** Columns of the terminal. Wider tables have their cells cut to fit. Default: no limit, nothing is cut. */
  readonly width?: number | undefined;
  /** How null looks. Default empty. */
  readonly nullText?: string;
}

/** Columns a cell is never cut below: rather than that, a row is shown as lines. */
const MIN_CELL = 10;
const GAP = "  ";

const NUMERIC = /^-?[\d,]+(\.\d+)?(e[+-]\d+)?( ([KMGT]i)?B)?$/;

/** A table whose numbers, sizes and counts are to the right. Ends with a line break. */
export function formatTable(
  names: readonly string[],
  rows: readonly (readonly Cell[])[],
  options: TableOptions = {},
): string {
  const { width = Number.POSITIVE_INFINITY, nullText = "" } = options;
  const headers = names.map(printable);
  const cells = rows.map((row) =>
    names.map((_, i) => (row[i] === null || row[i] === undefined ? nullText : printable(String(row[i])))),
  );
  const natural = headers.map((header, i) =>
    cells.reduce((widest, row) => Math.max(widest, displayWidth(row[i]!)), displayWidth(header)),
  );
  const limit = cellLimit(natural, width - GAP.length * (names.length - 1));
  if (limit < MIN_CELL) return formatRecords(headers, cells, width);
  const widths = natural.map((own) => Math.min(own, limit));
  const right = names.map((_, i) => isNumeric(rows.map((row) => row[i])));
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, i) => {
        const shown = cut(text, widths[i]!);
        const padding = " ".repeat(widths[i]! - displayWidth(shown));
        return right[i] ? padding + shown : shown + padding;
      })
      .join(GAP)
      .trimEnd();
  const rule = widths
    .map((own) => "─".repeat(own))
    .join(GAP)
    .trimEnd();
  return `${[line(headers), rule, ...cells.map(line)].join("\n")}\n`;
}

/** Whether a column holds numbers, also as text (decimals), and nothing but them and nulls. */
function isNumeric(column: readonly Cell[]): boolean {
  const present = column.filter((cell) => cell !== null && cell !== undefined);
  return present.length > 0 && present.every((cell) => typeof cell !== "string" || NUMERIC.test(cell));
}

/** The largest width that, as a limit to each column, lets all of them fit; infinite where they do. */
function cellLimit(widths: readonly number[], available: number): number {
  let left = available;
  const sorted = [...widths].sort((a, b) => a - b);
  for (const [i, own] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - i));
    if (own > share) return share;
    left -= own;
  }
  return Number.POSITIVE_INFINITY;
}

function formatRecords(headers: readonly string[], rows: readonly (readonly string[])[], width: number): string {
  const label = Math.min(Math.max(...headers.map(displayWidth)), Math.floor(width / 3));
  const value = Math.max(MIN_CELL, width - label - GAP.length);
  const records = rows.map((row, at) => {
    const lines = headers.map((header, i) => {
      const name = cut(header, label);
      return `${name}${" ".repeat(label - displayWidth(name))}${GAP}${cut(row[i]!, value)}`.trimEnd();
    });
    return [`─ row ${at + 1} ${"─".repeat(Math.max(0, Math.min(width, 40) - 8 - String(at + 1).length))}`, ...lines];
  });
  if (records.length === 0) records.push([`no rows of ${headers.join(", ")}`]);
  return `${records.flat().join("\n")}\n`;
}
