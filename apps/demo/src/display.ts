/** Text for a terminal: aligned tables and a line of progress. */

import type { Progress } from "eider";

/** Rows as an aligned table, numbers to the right; every line indented by two. */
export function formatTable(rows: readonly Readonly<Record<string, unknown>>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const numeric = names.map((name) => rows.every((row) => isNumber(row[name]) || row[name] === null));
  const cells = [names, ...rows.map((row) => names.map((name) => formatValue(row[name])))];
  const widths = names.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const lines = cells.map((line) =>
    line.map((cell, column) => (numeric[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!))),
  );
  lines.splice(
    1,
    0,
    widths.map((width) => "─".repeat(width)),
  );
  return lines.map((line) => `  ${line.join("  ").trimEnd()}`).join("\n");
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

function formatValue(value: unknown): string {
  if (value === null || value === undefined) return "";
  return isNumber(value) ? formatNumber(value) : String(value);
}

/** With thousands separators: `3,000,000`. */
export function formatNumber(value: number | bigint): string {
  return value.toLocaleString("en-US");
}

/** Shows how far an append is, on one line of a terminal that is erased at the end; silent where there is no terminal. */
export function progressLine(title: string): { update(progress: Progress): void; end(): void } {
  const out = process.stderr;
  if (!out.isTTY) return { update() {}, end() {} };
  return {
    update({ phase, bytes, totalBytes, rows }) {
      const part = totalBytes === undefined ? "" : ` ${Math.floor((100 * bytes) / Math.max(totalBytes, 1))}%`;
      out.write(`\r\x1b[K  ${title}: ${phase}${part}, ${formatNumber(rows)} rows`);
    },
    end() {
      out.write("\r\x1b[K");
    },
  };
}
