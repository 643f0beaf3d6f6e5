/** Nulls of nested columns: what lies under a null is a null, or an empty range. */

import { bitmapBytes, countBits, getBit } from "./bitmap.js";
import type { Column } from "./columns.js";
import { nullColumn } from "./layout.js";
import { NULL_ROW, takeValues } from "./take.js";

/**
 * The column with more nulls: those where `mask` is 0. Restores what {@link Column} promises of slots under nulls,
 * copying only where they hold something.
 */
export function maskNulls(column: Column, mask: Uint8Array): Column {
  const { length } = column;
  let validity = mask;
  if (column.validity !== undefined) {
    validity = new Uint8Array(bitmapBytes(length));
    for (let i = 0; i < validity.length; i++) validity[i] = column.validity[i]! & mask[i]!;
  }
  const nullCount = length - countBits(validity, 0, length);
  if (nullCount === column.nullCount) return column;
  if (nullCount === length) return nullColumn(column.type, length);
  if (column.type.kind === "struct") {
    return { ...column, validity, nullCount, children: column.children.map((child) => maskNulls(child, validity)) };
  }
  const { offsets } = column;
  if (offsets !== undefined && !nullsAreEmpty(offsets, validity, length)) {
    return takeValues(
      column,
      Uint32Array.from({ length }, (_, i) => (getBit(validity, i) ? i : NULL_ROW)),
    );
  }
  return { ...column, validity, nullCount };
}

function nullsAreEmpty(offsets: Int32Array, validity: Uint8Array, length: number): boolean {
  for (let i = 0; i < length; i++) if (offsets[i] !== offsets[i + 1] && !getBit(validity, i)) return false;
  return true;
}
