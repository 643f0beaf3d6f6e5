/** Rows in parts. */

import type { InputParts, PartsOptions } from "./input-parts.js";
import { ROWS, RowCuts, readOnce, SourceParts } from "./parts.js";
import { spoolRows } from "./spool.js";

export function openRowParts(
  rows: AsyncIterable<readonly unknown[]>,
  { partBytes, tempFolder }: PartsOptions,
): InputParts {
  const parts = new SourceParts(rows, ROWS, new RowCuts(partBytes));
  return {
    more: () => parts.more(),
    next(known) {
      const rowsBefore = parts.taken;
      const kept = known ? readOnce(parts.read()) : spoolRows(parts.read(), tempFolder);
      return { input: { kind: "rows", rows: kept, rowsBefore }, options: {} };
    },
    [Symbol.asyncDispose]: () => parts[Symbol.asyncDispose](),
  };
}
