/**
 * JSON rows → columns, directed by the schema. This takes the rows that it is sure of and leaves all others, untouched,
 * to TypeScript, which takes them or finds out what is wrong: every rule is there, and each function here returns 0
 * where one might be broken.
 */

import { endRow, full, root, strict } from "./batch";
import { CHILD, DROPPED, find, forgetMissed, matches, NEEDED, NEXT, SIZE } from "./keys";
import {
  BINARY,
  BOOL,
  CAPACITY,
  CHILDREN,
  DATE,
  DECIMAL,
  FIRST,
  FIXED,
  FLAGS,
  FLOAT32,
  FLOAT64,
  growValues,
  JSON_TEXT,
  LENGTH,
  LIST,
  MAP,
  NULLABLE,
  OFFSETS,
  pad,
  REQUIRED,
  SLOW,
  STRING,
  STRUCT,
  setBool,
  TIME,
  TIMESTAMP,
  TIMESTAMPTZ,
  TYPE,
  truncate,
  UINT64,
  UNKNOWN,
  UUID,
  VALUES,
} from "./node";
import { append64, inRange, readDecimal, readFloat, readInteger, readNumber, slot } from "./number";
import { days, micros, readDate, readInstant, readTime, readTimestamp } from "./temporal";
import { appendBytes, readBase64, readString, readUuid, skipString } from "./text";

const QUOTE: u32 = 0x22;
const COMMA: u32 = 0x2c;
const COLON: u32 = 0x3a;
const OPEN_LIST: u32 = 0x5b;
const CLOSE_LIST: u32 = 0x5d;
const OPEN_OBJECT: u32 = 0x7b;
const CLOSE_OBJECT: u32 = 0x7d;
const LF: u32 = 0x0a;
const SPACE: u32 = 0x20;

/** `null`, `true` and `alse` as they lie in memory. */
const NULL_TEXT: u32 = 0x6c6c756e;
const TRUE_TEXT: u32 = 0x65757274;
const ALSE_TEXT: u32 = 0x65736c61;

/** Objects and lists in each other, the row itself included; as in `row-batches.ts`. */
const MAX_DEPTH: i32 = 100;

/** How rows follow one another: a line each; with commas between; with nothing but blanks between. */
export const LINES: u32 = 0;
export const COMMAS: u32 = 1;

let depth: i32 = 0;
/** Whether a line feed is a blank, as in JSON that is not NDJSON. */
let multiline: bool = false;
/** Line feeds that {@link readRows} has passed, up to the end of the last row taken; and within the row being read. */
let lines: u32 = 0;
let linesInRow: u32 = 0;

/** Line feeds passed by the last {@link readRows}. */
export function linesRead(): u32 {
  return lines;
}

/** The spellings of keys dropped from the row being read. */
const MAX_DROPPED: u32 = 256;
const dropped = memory.data(1024, 16);
let droppedCount: u32 = 0;

/**
 * Takes rows from `at` on, until the batch is full or a row is not whole or not sure. A 0 ends the input.
 * @returns where the last row taken ends, its line end included; `at` if none was taken
 */
export function readRows(at: usize, separator: u32): usize {
  multiline = separator !== LINES;
  lines = 0;
  linesInRow = 0;
  forgetMissed();
  let done = at;
  while (!full) {
    let c: u32 = load<u8>(at);
    while (c <= SPACE) {
      if (c === LF) {
        linesInRow++;
        if (!multiline) done = at + 1;
      } else if (!isBlank(c)) break;
      c = load<u8>(++at);
    }
    if (!multiline) {
      lines += linesInRow;
      linesInRow = 0;
    }
    if (c !== OPEN_OBJECT) return done;
    const start = at;
    const index = load<u32>(root, LENGTH);
    depth = 0;
    droppedCount = 0;
    at = readObject(root, at + 1);
    if (at !== 0 && !multiline) {
      // Nothing but blanks up to the line end.
      c = load<u8>(at);
      while (c !== LF && isBlank(c)) c = load<u8>(++at);
      if (c !== LF) at = 0;
    }
    if (at === 0) {
      truncate(root, index);
      return done;
    }
    endRow(index + 1, at - start);
    for (let i: u32 = 0; i < droppedCount; i++) {
      const spelling = load<usize>(dropped + ((<usize>i) << 2));
      store<u32>(spelling, load<u32>(spelling, DROPPED) + 1, DROPPED);
    }
    if (!multiline) {
      linesInRow = 1;
      at++;
    }
    lines += linesInRow;
    linesInRow = 0;
    done = at;
    if (separator === COMMAS) {
      if (load<u8>(at) <= SPACE) at = skipBlanks(at);
      if (load<u8>(at) !== COMMA) break;
      at++;
    }
  }
  return done;
}

function isBlank(c: u32): bool {
  return c === SPACE || c === LF || c === 0x0d || c === 0x09;
}

/** Where the blanks at `at` end. */
function skipBlanks(at: usize): usize {
  let c: u32 = load<u8>(at);
  // Mostly one space behind a colon or comma.
  if (c === SPACE) {
    c = load<u8>(++at);
    if (c > SPACE) return at;
  }
  while (c <= SPACE) {
    if (c === LF) {
      if (!multiline) break;
      linesInRow++;
    } else if (!isBlank(c)) break;
    c = load<u8>(++at);
  }
  return at;
}

/** Reads the members of an object, from behind its bracket, into the children of a struct. */
function readObject(node: usize, at: usize): usize {
  if (++depth > MAX_DEPTH) return 0;
  const index = load<u32>(node, LENGTH);
  let required: u32 = 0;
  // Where the spelling that is expected next is remembered.
  let place = node + FIRST;
  let c: u32 = load<u8>(at);
  if (c <= SPACE) {
    at = skipBlanks(at);
    c = load<u8>(at);
  }
  if (c !== CLOSE_OBJECT) {
    for (;;) {
      if (c !== QUOTE) return 0;
      at++;
      let spelling = load<usize>(place);
      if (!matches(spelling, at)) {
        spelling = find(node, at);
        if (spelling === 0) return 0;
        store<usize>(place, spelling);
      }
      place = spelling + NEXT;
      at += load<u32>(spelling, SIZE);
      if (load<u8>(at) !== COLON) {
        at = skipBlanks(at);
        if (load<u8>(at) !== COLON) return 0;
      }
      c = load<u8>(++at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
      const child = load<usize>(spelling, CHILD);
      if (child !== 0) {
        const length = load<u32>(child, LENGTH);
        if (length !== index) {
          // A key that is repeated.
          if (length > index) return 0;
          pad(child, index);
        }
        required += load<u32>(spelling, NEEDED);
        at = c === QUOTE && load<u32>(child, TYPE) === STRING ? readString(child, at + 1) : readValue(child, at, c);
      } else {
        if (droppedCount === MAX_DROPPED) return 0;
        store<usize>(dropped + ((<usize>droppedCount) << 2), spelling);
        droppedCount++;
        at = skipValue(at, c);
      }
      if (at === 0) return 0;
      c = load<u8>(at);
      if (c !== COMMA) {
        if (c <= SPACE) {
          at = skipBlanks(at);
          c = load<u8>(at);
        }
        if (c === CLOSE_OBJECT) break;
        if (c !== COMMA) return 0;
      }
      c = load<u8>(++at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
    }
  }
  if (required !== load<u32>(node, REQUIRED)) return 0;
  depth--;
  store<u32>(node, index + 1, LENGTH);
  return at + 1;
}

/** Reads the value at `at`, which begins with `c`, into a column; returns where it ends, or 0. */
function readValue(node: usize, at: usize, c: u32): usize {
  if (c === 0x6e) {
    if (load<u32>(at) !== NULL_TEXT || (load<u32>(node, FLAGS) & NULLABLE) === 0) return 0;
    pad(node, load<u32>(node, LENGTH) + 1);
    return at + 4;
  }
  if ((load<u32>(node, FLAGS) & SLOW) !== 0) return 0;
  const type = load<u32>(node, TYPE);
  if (type <= UINT64) return type === BOOL ? readBool(node, at) : readInteger(node, at, strict);
  if (c === QUOTE) {
    at++;
    switch (type) {
      case STRING:
        return readString(node, at);
      case TIMESTAMPTZ:
        at = readInstant(at);
        return closeMicros(node, at);
      case TIMESTAMP:
        at = readTimestamp(at);
        return closeMicros(node, at);
      case TIME:
        at = readTime(at);
        return closeMicros(node, at);
      case DATE:
        at = readDate(at);
        if (at === 0 || load<u8>(at) !== QUOTE) return 0;
        store<i32>(slot(node), days);
        return at + 1;
      case UUID:
        return readUuid(node, at);
      case BINARY:
      case FIXED:
        return readBase64(node, at);
      case DECIMAL: {
        at = readDecimal(node, at, false);
        if (at === 0) return 0;
        if (load<u8>(at) === QUOTE) return at + 1;
        store<u32>(node, load<u32>(node, LENGTH) - 1, LENGTH);
        return 0;
      }
      case JSON_TEXT:
        return readVerbatim(node, at - 1, c);
      default:
        return 0;
    }
  }
  switch (type) {
    case FLOAT32:
    case FLOAT64:
      return readFloat(node, at);
    case DECIMAL:
      return readDecimal(node, at, strict);
    case STRUCT:
      return c === OPEN_OBJECT ? readObject(node, at + 1) : 0;
    case LIST:
      return c === OPEN_LIST ? readList(node, at + 1) : 0;
    case MAP:
      return c === OPEN_OBJECT ? readMap(node, at + 1) : 0;
    case JSON_TEXT:
      return readVerbatim(node, at, c);
    case UNKNOWN:
      return readNothing(node, at, c);
    default:
      return 0;
  }
}

/** Appends {@link micros}, of which the text ends at `at`, or is wrong if that is 0. */
function closeMicros(node: usize, at: usize): usize {
  if (at === 0 || load<u8>(at) !== QUOTE) return 0;
  append64(node, <u64>micros);
  return at + 1;
}

export function readBool(node: usize, at: usize): usize {
  let value = true;
  const begin = load<u32>(at);
  if (begin !== TRUE_TEXT) {
    if (load<u8>(at) !== 0x66 || load<u32>(at, 1) !== ALSE_TEXT) return 0;
    value = false;
    at++;
  }
  const index = load<u32>(node, LENGTH);
  if (index >= load<u32>(node, CAPACITY)) growValues(node, index + 1);
  setBool(load<usize>(node, VALUES), index, value);
  store<u32>(node, index + 1, LENGTH);
  return at + 4;
}

/** Ends the value of a list or map, whose elements are in `child`. */
function close(node: usize, child: usize): void {
  const index = load<u32>(node, LENGTH);
  if (index >= load<u32>(node, CAPACITY)) growValues(node, index + 1);
  store<u32>(load<usize>(node, OFFSETS) + ((<usize>index) << 2), load<u32>(child, LENGTH), 4);
  store<u32>(node, index + 1, LENGTH);
}

function readList(node: usize, at: usize): usize {
  if (++depth > MAX_DEPTH) return 0;
  const child = load<usize>(load<usize>(node, CHILDREN));
  let c: u32 = load<u8>(at);
  if (c <= SPACE) {
    at = skipBlanks(at);
    c = load<u8>(at);
  }
  if (c !== CLOSE_LIST) {
    for (;;) {
      at = readValue(child, at, c);
      if (at === 0) return 0;
      c = load<u8>(at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
      if (c === CLOSE_LIST) break;
      if (c !== COMMA) return 0;
      c = load<u8>(++at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
    }
  }
  depth--;
  close(node, child);
  return at + 1;
}

function readMap(node: usize, at: usize): usize {
  if (++depth > MAX_DEPTH) return 0;
  const children = load<usize>(node, CHILDREN);
  const key = load<usize>(children);
  const value = load<usize>(children, 4);
  const first = load<u32>(key, LENGTH);
  let c: u32 = load<u8>(at);
  if (c <= SPACE) {
    at = skipBlanks(at);
    c = load<u8>(at);
  }
  if (c !== CLOSE_OBJECT) {
    for (;;) {
      if (c !== QUOTE) return 0;
      at = readString(key, at + 1);
      if (at === 0 || !isNewKey(key, first)) return 0;
      if (load<u8>(at) <= SPACE) at = skipBlanks(at);
      if (load<u8>(at) !== COLON) return 0;
      c = load<u8>(++at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
      at = readValue(value, at, c);
      if (at === 0) return 0;
      c = load<u8>(at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
      if (c === CLOSE_OBJECT) break;
      if (c !== COMMA) return 0;
      c = load<u8>(++at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
    }
  }
  depth--;
  close(node, key);
  return at + 1;
}

/** Keys of one map that are compared with each other; larger maps are left to TypeScript, which hashes them. */
const MAX_MAP_KEYS: u32 = 64;

/** Whether the last key of a map, whose keys begin with value `first` of the column, is none of those before it. */
function isNewKey(key: usize, first: u32): bool {
  const last = load<u32>(key, LENGTH) - 1;
  if (last - first > MAX_MAP_KEYS) return false;
  const offsets = load<usize>(key, OFFSETS);
  const values = load<usize>(key, VALUES);
  const start = load<u32>(offsets + ((<usize>last) << 2));
  const size = load<u32>(offsets + ((<usize>last) << 2), 4) - start;
  let from = load<u32>(offsets + ((<usize>first) << 2));
  for (let i = first; i < last; i++) {
    const to = load<u32>(offsets + ((<usize>i) << 2), 4);
    if (to - from === size && memory.compare(values + from, values + start, size) === 0) return false;
    from = to;
  }
  return true;
}

/** json: the text of the value as it is written. */
function readVerbatim(node: usize, at: usize, c: u32): usize {
  const end = skipValue(at, c);
  if (end !== 0) appendBytes(node, at, end);
  return end;
}

/** A column without a type takes `{}` and `[]`. */
function readNothing(node: usize, at: usize, c: u32): usize {
  if ((c !== OPEN_OBJECT && c !== OPEN_LIST) || depth >= MAX_DEPTH) return 0;
  at = skipBlanks(at + 1);
  if (load<u8>(at) !== (c === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_LIST)) return 0;
  pad(node, load<u32>(node, LENGTH) + 1);
  return at + 1;
}

/** Steps over the value at `at`, which begins with `c` and must be right; returns where it ends, or 0. */
function skipValue(at: usize, c: u32): usize {
  switch (c) {
    case QUOTE:
      return skipString(at + 1);
    case OPEN_OBJECT:
    case OPEN_LIST:
      return skipMembers(at + 1, c === OPEN_OBJECT);
    case 0x6e:
      return load<u32>(at) === NULL_TEXT ? at + 4 : 0;
    case 0x74:
      return load<u32>(at) === TRUE_TEXT ? at + 4 : 0;
    case 0x66:
      return load<u32>(at, 1) === ALSE_TEXT ? at + 5 : 0;
    default:
      at = readNumber(at);
      return at !== 0 && inRange() ? at : 0;
  }
}

function skipMembers(at: usize, isObject: bool): usize {
  if (++depth > MAX_DEPTH) return 0;
  const closing = isObject ? CLOSE_OBJECT : CLOSE_LIST;
  let c: u32 = load<u8>(at);
  if (c <= SPACE) {
    at = skipBlanks(at);
    c = load<u8>(at);
  }
  if (c !== closing) {
    for (;;) {
      if (isObject) {
        if (c !== QUOTE) return 0;
        at = skipString(at + 1);
        if (at === 0) return 0;
        if (load<u8>(at) <= SPACE) at = skipBlanks(at);
        if (load<u8>(at) !== COLON) return 0;
        c = load<u8>(++at);
        if (c <= SPACE) {
          at = skipBlanks(at);
          c = load<u8>(at);
        }
      }
      at = skipValue(at, c);
      if (at === 0) return 0;
      c = load<u8>(at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
      if (c === closing) break;
      if (c !== COMMA) return 0;
      c = load<u8>(++at);
      if (c <= SPACE) {
        at = skipBlanks(at);
        c = load<u8>(at);
      }
    }
  }
  depth--;
  return at + 1;
}
