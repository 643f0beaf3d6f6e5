/**
 * Definition and repetition levels (Dremel), entry by entry. Levels are bytes; indexes are 32-bit, −1 where the path of
 * an entry has ended. A pointer of 0 stands for an array that is not needed: see `parquet-levels.ts`.
 */

/** Entries of a nullable column whose parent has all of them: levels, and the values' positions. Returns their number. */
export function enterFlat(count: i32, level: u8, validity: usize, definition: usize, positions: usize): i32 {
  let values = 0;
  const none = <u64>level * 0x0101010101010101;
  for (let i = 0; i < count; i++) {
    const bits = <i32>load<u8>(validity + (i >> 3));
    // Where most are null, mostly eight in a row are.
    if ((i & 7) == 0 && bits == 0 && i + 8 <= count) {
      store<u64>(definition + i, none);
      i += 7;
      continue;
    }
    const valid = (bits >> (i & 7)) & 1;
    store<u8>(definition + i, level + <u8>valid);
    // Overwritten by the next entry if this one is null.
    store<i32>(positions + ((<usize>values) << 2), i);
    values += valid;
  }
  return values;
}

/** Steps onto a nullable column: a value adds a level, a null ends the path. `level` is the parent's. */
export function enterNullable(
  count: i32,
  level: u8,
  reached: usize,
  index: usize,
  validity: usize,
  definition: usize,
  next: usize,
): void {
  for (let i = 0; i < count; i++) {
    const at = index == 0 ? i : load<i32>(index + ((<usize>i) << 2));
    const valid = at >= 0 && (validity == 0 || ((<i32>load<u8>(validity + (at >> 3)) >> (at & 7)) & 1) != 0);
    store<u8>(definition + i, valid ? level + 1 : at < 0 ? load<u8>(reached + i) : level);
    store<i32>(next + ((<usize>i) << 2), valid ? at : -1);
  }
}

/** Whether an entry that has come this far is null. */
export function hasNull(count: i32, index: usize, validity: usize): bool {
  for (let i = 0; i < count; i++) {
    const at = index == 0 ? i : load<i32>(index + ((<usize>i) << 2));
    if (at >= 0 && ((<i32>load<u8>(validity + (at >> 3)) >> (at & 7)) & 1) == 0) return true;
  }
  return false;
}

/**
 * Steps into lists: each element is an entry; an empty list keeps its entry, one level short. Returns the number of
 * entries: at most `count` and the elements of the lists.
 */
export function enterRepeated(
  count: i32,
  level: u8,
  repetitionLevel: u8,
  reached: usize,
  repeated: usize,
  index: usize,
  offsets: usize,
  definition: usize,
  repetition: usize,
  next: usize,
): i32 {
  const first = definition;
  for (let i = 0; i < count; i++) {
    const at = index == 0 ? i : load<i32>(index + ((<usize>i) << 2));
    const list = offsets + ((<usize>max(at, 0)) << 2);
    const start = load<i32>(list);
    const end = at < 0 ? start : load<i32>(list, 4);
    store<u8>(repetition++, repeated == 0 ? 0 : load<u8>(repeated + i));
    if (start == end) {
      store<u8>(definition++, reached == 0 ? level : load<u8>(reached + i));
      store<i32>(next, -1);
      next += 4;
      continue;
    }
    store<u8>(definition++, level + 1);
    store<i32>(next, start);
    next += 4;
    for (let element = start + 1; element < end; element++) {
      store<u8>(repetition++, repetitionLevel);
      store<u8>(definition++, level + 1);
      store<i32>(next, element);
      next += 4;
    }
  }
  return <i32>(definition - first);
}

/** The entries' positions without those that ended. Returns their number. */
export function keepPositions(count: i32, index: usize, positions: usize): i32 {
  let values = 0;
  for (let i = 0; i < count; i++) {
    const at = load<i32>(index + ((<usize>i) << 2));
    store<i32>(positions + ((<usize>values) << 2), at);
    values += i32(at >= 0);
  }
  return values;
}

/**
 * Cuts a chunk into pages: at most `pageRows` rows, and about `pageBytes` of values, each page starting with a row, as
 * the page index requires. Writes entry, value and row number of each cut, the totals last; returns how many.
 * `offsets` gives the bytes of values of no fixed `width`.
 */
export function cutPages(
  count: i32,
  values: i32,
  definition: usize,
  repetition: usize,
  maxDefinition: u8,
  offsets: usize,
  width: i32,
  pageRows: i32,
  pageBytes: i32,
  cuts: usize,
): i32 {
  let to = cut(cuts, 0, 0, 0);
  let row = 0;
  if (definition == 0 && repetition == 0) {
    // Rows, entries and values are the same: no need to look at each.
    while (row < count) {
      const rest = <i32>min<i64>(count, <i64>row + pageRows);
      const fit = offsets == 0 ? row + pageBytes / width : firstBeyond(offsets, row, rest, pageBytes);
      row = min(rest, max(row + 1, fit));
      if (row < count) to = cut(to, row, row, row);
    }
  } else {
    let value = 0;
    let pageRow = 0;
    let limit = <i64>pageBytes + (offsets == 0 ? 0 : load<i32>(offsets));
    for (let entry = 0; entry < count; entry++) {
      // Sixteen entries at once, where none of them can begin a page.
      if (entry + 16 <= count && row + 16 - pageRow < pageRows && bytesAt(offsets, width, value, 16, values) < limit) {
        row += repetition == 0 ? 16 : count16(repetition + entry, 0);
        value += definition == 0 ? 16 : count16(definition + entry, maxDefinition);
        entry += 15;
        continue;
      }
      if (repetition == 0 || load<u8>(repetition + entry) == 0) {
        const bytes = bytesAt(offsets, width, value, 0, values);
        if (row > pageRow && (row - pageRow >= pageRows || bytes >= limit)) {
          to = cut(to, entry, value, row);
          pageRow = row;
          limit = bytes + pageBytes;
        }
        row++;
      }
      value += i32(definition == 0 || load<u8>(definition + entry) == maxDefinition);
    }
  }
  to = cut(to, count, values, row);
  return <i32>(to - cuts) / 12;
}

/** Bytes of the values before `value + more`, of which there are `values`. */
// @ts-ignore: decorator
@inline
function bytesAt(offsets: usize, width: i32, value: i32, more: i32, values: i32): i64 {
  const end = min(value + more, values);
  return offsets == 0 ? <i64>end * width : load<i32>(offsets + ((<usize>end) << 2));
}

/** How many of sixteen bytes are `value`. */
// @ts-ignore: decorator
@inline
function count16(at: usize, value: u8): i32 {
  return popcnt(i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(<i8>value))));
}

// @ts-ignore: decorator
@inline
function cut(to: usize, entry: i32, value: i32, row: i32): usize {
  store<i32>(to, entry);
  store<i32>(to, value, 4);
  store<i32>(to, row, 8);
  return to + 12;
}

/** The first n in `start + 1` … `end` with `bytes` or more from `start` to it, or `end`. */
function firstBeyond(offsets: usize, start: i32, end: i32, bytes: i32): i32 {
  const limit = <i64>load<i32>(offsets + ((<usize>start) << 2)) + bytes;
  let low = start + 1;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (<i64>load<i32>(offsets + ((<usize>middle) << 2)) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
