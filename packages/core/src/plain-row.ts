/** Rows of JavaScript → copies that survive structured cloning. */

import { bytesOfValue, kindOf, tooDeep, unsupported, unwrap } from "./js-values.js";
import { MAX_DEPTH } from "./row-batches.js";

/**
 * A copy of a row for a structured clone, which by itself would lose a `toJSON` and refuse functions, proxies and shared
 * memory. Parsers, inference and {@link canonicalRow} take the copy for what they take the row for.
 * @returns undefined where there is no such copy: for rows that are rejects under any schema
 */
export function plainRow(row: unknown): unknown {
  try {
    return plain(row, 0);
  } catch {
    // Also what a getter throws: whoever reads the row itself meets it too.
    return undefined;
  }
}

function plain(original: unknown, depth: number): unknown {
  const value = unwrap(original);
  const kind = kindOf(value);
  switch (kind) {
    case "date":
      return new Date((value as Date).getTime());
    case "binary":
      return bytesOfValue(value).slice();
    case "list":
    case "map":
    case "object":
      if (depth > MAX_DEPTH) throw tooDeep();
      break;
    case "other":
      throw unsupported(value);
    default:
      return value;
  }
  if (kind === "list") return Array.from(value as Iterable<unknown>, (element) => plain(element, depth + 1));
  if (kind === "map") {
    const entries = Array.from(value as ReadonlyMap<unknown, unknown>);
    return new Map(entries.map(([key, member]) => [plain(key, depth + 1), plain(member, depth + 1)]));
  }
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value as object)) {
    const member = plain((value as Readonly<Record<string, unknown>>)[key], depth + 1);
    // To assign it would set the prototype.
    if (key === "__proto__") Object.defineProperty(copy, key, { value: member, enumerable: true });
    else copy[key] = member;
  }
  return copy;
}
