/** Text for people: aligned tables, counts and sizes. And JSON for programs. */

import type { Context } from "./context.js";
import { write } from "./terminal.js";

export type Cell = string | number | bigint | null | undefined;

/** Widest a column may get before its text is cut. */
const MAX_WIDTH = 60;

/** `1234567` as `1,234,567`, whatever the locale of the machine. */
export function formatCount(value: number | bigint): string {
  return value.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** Bytes in powers of 1024, with one digit after the point from KiB on. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} TiB`;
}

/** Rows under headers, columns padded to equal width; numbers to the right. */
export function formatTable(headers: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const right = headers.map((_, column) =>
    rows.every((row) => row[column] === null || row[column] === undefined || typeof row[column] !== "string"),
  );
  const text = [headers, ...rows].map((row) => headers.map((_, column) => cellText(row[column])));
  const widths = headers.map((_, column) => Math.max(...text.map((row) => displayWidth(row[column] ?? ""))));
  const lines = text.map((row) =>
    row
      .map((cell, column) => {
        const padding = " ".repeat((widths[column] ?? 0) - displayWidth(cell));
        return right[column] ? padding + cell : cell + padding;
      })
      .join("  ")
      .trimEnd(),
  );
  lines.splice(1, 0, widths.map((width) => "─".repeat(width)).join("  "));
  return `${lines.join("\n")}\n`;
}

function cellText(cell: Cell): string {
  if (cell === null || cell === undefined) return "";
  // Control characters would break the lines, or drive the terminal.
  const text = String(cell).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, (char) => JSON.stringify(char).slice(1, -1));
  const characters = [...text];
  return characters.length > MAX_WIDTH ? `${characters.slice(0, MAX_WIDTH - 1).join("")}…` : text;
}

/** Columns a text takes in a terminal: East Asian wide characters and emoji take two, combining marks none. */
function displayWidth(text: string): number {
  let width = 0;
  for (const char of text) {
    if (/\p{Mn}|\p{Me}|\p{Cf}/u.test(char)) continue;
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
        char,
      )
        ? 2
        : 1;
  }
  return width;
}

/** JSON of plain results; integers beyond 2^53 as text, bytes as base64. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => {
    if (typeof item === "bigint") {
      return item >= BigInt(Number.MIN_SAFE_INTEGER) && item <= BigInt(Number.MAX_SAFE_INTEGER)
        ? Number(item)
        : item.toString();
    }
    return item instanceof Uint8Array ? Buffer.from(item).toString("base64") : item;
  });
}

/** Prints a list as a table, or the whole of it as JSON. */
export async function printList<T>(
  context: Context,
  items: readonly T[],
  options: { readonly json?: boolean },
  headers: readonly string[],
  cells: (item: T) => readonly Cell[],
): Promise<void> {
  const text = options.json ? `${toJson(items)}\n` : formatTable(headers, items.map(cells));
  await write(context.terminal.stdout, text);
}
