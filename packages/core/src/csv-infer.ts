/** CSV bytes → schema. Every cell of every row is looked at; a column's type never depends on their order. */

import { csvDialect, detectDelimiter } from "./csv-dialect.js";
import { type CsvConsumer, CsvInput, type CsvRecordTaker, NullCells, ROW, recordForm } from "./csv-input.js";
import { isFloat } from "./csv-numbers.js";
import { CsvProfiles, type ProfileOptions } from "./csv-profile.js";
import { type CsvReader, ESCAPED } from "./csv-reader.js";
import { PIECE_BYTES } from "./engine-batches.js";
import { InvalidInputError } from "./errors.js";
import { type IntegerBounds, inferNumber, type NumberNeed, needOf, widenNumber } from "./evolve.js";
import { DEFAULT_MAX_COLUMNS } from "./infer.js";
import { NumberProfile } from "./number-profile.js";
import { NumberToken } from "./number-token.js";
import type { CsvOptions, Inferrer, InferrerOptions, TextPart } from "./parser.js";
import { type DataType, type Field, nameKey, type Schema } from "./schema.js";
import { TemporalReader } from "./temporal.js";

export interface CsvInferrerOptions extends InferrerOptions {
  readonly csv?: CsvOptions;
  readonly part?: TextPart;
}

/**
 * An inferrer of CSV. All cells of a column decide its type together; null cells do not count:
 *
 * - integers (`-?(0|[1-9][0-9]*)`, but not `-0`): int64; beyond it decimal(38,0); beyond that string
 * - these and plain decimals (`-?(0|[1-9][0-9]*)\.[0-9]+`): float64 if that loses nothing, that is if the integers are
 *   exact in it and the decimals have at most 15 significant digits; else a decimal that holds them all, else string
 * - `true` and `false`: bool
 * - `YYYY-MM-DD`: date; with a time, after `T` or a space: timestamp; with `T` and a zone: timestamptz. Not with
 *   `inferTimestamps: false`, where they are text
 * - anything else, such as `007`, `+7`, `1_000`, `1e3` and `0x10`, and any mixture: string
 *
 * Quotes do not make a cell text, as some writers quote every cell; only the quoted empty cell is text. Columns that a
 * base schema has keep their type; numeric ones are widened to take the numbers among the cells.
 */
export function createCsvInferrer(options: CsvInferrerOptions): Inferrer<Uint8Array> {
  const csv = options.csv ?? {};
  csvDialect(csv); // an engine that is acquired must find its inferrer
  return new CsvInferrer(options, CsvProfiles.create(csv));
}

/** The same without the engine. */
export function createPlainCsvInferrer(options: CsvInferrerOptions): Inferrer<Uint8Array> {
  return new CsvInferrer(options);
}

class CsvInferrer implements Inferrer<Uint8Array>, CsvConsumer {
  readonly #options: CsvInferrerOptions;
  readonly #input: CsvInput;
  readonly #pad: boolean;
  readonly #nulls: NullCells;
  /** Columns of the input. */
  #names: readonly string[] = [];
  /** For each what its cells need, undefined where the base schema has decided. */
  #columns: readonly (ColumnNeed | undefined)[] = [];
  #rows = 0;
  /** Until the schema is asked for, which gives the engine back. */
  #profiles: CsvProfiles | undefined;

  constructor(options: CsvInferrerOptions, profiles?: CsvProfiles) {
    this.#options = options;
    this.#profiles = profiles;
    const csv = options.csv ?? {};
    this.#input = new CsvInput(csv, this, options.part);
    this.#pad = csv.ragged === "pad";
    this.#nulls = new NullCells(csv);
  }

  get rows(): number {
    return this.#rows + (this.#profiles?.rows ?? 0);
  }

  get engine(): CsvRecordTaker | undefined {
    return this.#profiles?.records;
  }

  push(input: Uint8Array): void {
    this.#guard(() => {
      for (let at = 0; at < input.length; at += PIECE_BYTES) {
        this.#input.push(input.subarray(at, at + PIECE_BYTES));
        this.#profiles?.records.unload();
      }
    });
  }

  end(): Schema {
    this.#guard(() => this.#input.end());
    return this.schema();
  }

  wholeUntil(utf8: Uint8Array, at: number): number {
    return this.#profiles?.records.wholeUntil(utf8, at) ?? at;
  }

  schema(): Schema {
    this.#detach();
    const front = this.#input.undecided;
    if (front) {
      // The delimiter is decided by more input than this; until then by what there is.
      const { delimiter } = detectDelimiter(front, this.#options.csv, false);
      const csv: CsvOptions = { ...this.#options.csv, delimiter, encoding: "utf-8" };
      const early = new CsvInferrer({ ...this.#options, csv });
      early.push(front);
      return early.schema();
    }
    const byName = new Map(this.#names.map((name, column) => [nameKey(name), column]));
    const known = (this.#options.base?.fields ?? []).map((field): Field => {
      const column = byName.get(nameKey(field.name));
      byName.delete(nameKey(field.name));
      const need = column === undefined ? undefined : this.#columns[column];
      return need ? { ...field, type: need.type(this.#options.integerBounds?.get(field.id)) } : field;
    });
    const added = Array.from(byName.values(), (column): Field => {
      const name = this.#names[column]!;
      return { id: 0, name, type: this.#columns[column]!.type(), nullable: true };
    });
    return { fields: [...known, ...added] };
  }

  /** What fails is not asked again: the engine is given back. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#profiles?.release();
      this.#profiles = undefined;
      throw error;
    }
  }

  /** Adds what the engine has found, and gives it back. */
  #detach(): void {
    const profiles = this.#profiles;
    if (!profiles) return;
    this.#input.detach();
    this.#profiles = undefined;
    this.#rows += profiles.rows;
    for (const [column, need] of this.#columns.entries()) {
      if (!need) continue;
      for (const text of profiles.texts(column)) {
        const bytes = encoder.encode(text);
        need.add(bytes, 0, bytes.length);
      }
    }
    profiles.release();
  }

  columns(names: readonly string[], line: number): void {
    const base = this.#options.base?.fields ?? [];
    const fields = new Map(base.map((field) => [nameKey(field.name), field]));
    const added = names.filter((name) => !fields.has(nameKey(name))).length;
    const { maxColumns = DEFAULT_MAX_COLUMNS } = this.#options;
    if (base.length + added > maxColumns) {
      const reason = `the table would have ${base.length + added} columns, and the limit is ${maxColumns}`;
      throw new InvalidInputError("too_many_fields", `line ${line}: ${reason}; is the delimiter right?`, {
        rows: [{ line, code: "too_many_fields", reason }],
      });
    }
    this.#names = names;
    this.#columns = names.map((name) => {
      const type = fields.get(nameKey(name))?.type;
      const number = type !== undefined && needOf(type) !== undefined ? type : undefined;
      const open = type === undefined || type.kind === "unknown" || number !== undefined;
      return open ? new ColumnNeed(this.#options.inferTimestamps ?? true, number) : undefined;
    });
    this.#profiles?.begin(this.#input.delimiter, this.#columns);
  }

  records(block: CsvReader, from: number): void {
    const width = this.#names.length;
    const rows: number[] = [];
    for (let r = from; r < block.records; r++) if (recordForm(block, r, width, this.#pad) === ROW) rows.push(r);
    this.#rows += rows.length;
    for (const [column, need] of this.#columns.entries()) {
      if (!need) continue;
      for (const record of rows) {
        if (need.decided) break;
        const cell = block.recordCells[record]! + column;
        if (cell >= block.recordCells[record + 1]! || this.#nulls.has(block, cell)) continue;
        if ((block.cellFlags[cell]! & ESCAPED) === 0) {
          need.add(block.bytes, block.cellStarts[cell]!, block.cellEnds[cell]!);
        } else {
          const text = block.unescape(cell);
          need.add(text, 0, text.length);
        }
      }
    }
  }
}

const encoder = new TextEncoder();

/** Kinds of text, as bits. */
const NUMBER = 1;
const BOOL = 2;
const DATE = 4;
const TIMESTAMP = 8;
const INSTANT = 16;
const TEXT = 32;

const TYPES: ReadonlyMap<number, DataType> = new Map<number, DataType>([
  [0, { kind: "unknown" }],
  [BOOL, { kind: "bool" }],
  [DATE, { kind: "date" }],
  [TIMESTAMP, { kind: "timestamp" }],
  [INSTANT, { kind: "timestamptz" }],
]);

/** What the cells of one column have in common. */
class ColumnNeed implements ProfileOptions {
  readonly temporal: boolean;
  readonly open: boolean;
  readonly exact: boolean;
  /** The column's type in the base schema if it is a number's: other cells will not fit, whatever else is there. */
  readonly #base: DataType | undefined;
  readonly #token: NumberToken = new NumberToken();
  readonly #reader: TemporalReader = new TemporalReader();
  readonly #numbers: NumberProfile;
  #kinds = 0;
  /** Of the decimals: whether a float64 keeps them, and the digits that they have behind the point. */
  #floats = true;
  #scale = 0;

  constructor(temporal: boolean, base: DataType | undefined) {
    this.temporal = temporal;
    this.open = base === undefined;
    this.exact = base !== undefined && needOf(base)?.floats === false;
    this.#base = base;
    this.#numbers = new NumberProfile(base);
  }

  /** No further cell can change the type: it is string. */
  get decided(): boolean {
    return !this.#base && ((this.#kinds & TEXT) !== 0 || (this.#kinds & (this.#kinds - 1)) !== 0);
  }

  add(bytes: Uint8Array, start: number, end: number): void {
    this.#kinds |= this.#kindOf(bytes, start, end);
  }

  /** `stored`: bounds of the column's integers in the table. */
  type(stored?: IntegerBounds): DataType {
    const need: NumberNeed = { ...this.#numbers.need, floats: this.#floats };
    if (this.#base) {
      if ((this.#kinds & NUMBER) === 0) return this.#base;
      if (this.#base.kind !== "float32") return widenNumber(this.#base, need, stored) ?? this.#base;
      return this.#numbers.single || !need.exact ? this.#base : { kind: "float64" };
    }
    // A new decimal keeps the digits that are written, as in 1.50.
    if (this.#kinds === NUMBER) return inferNumber({ ...need, scale: this.#scale }) ?? { kind: "string" };
    return TYPES.get(this.#kinds) ?? { kind: "string" };
  }

  #kindOf(bytes: Uint8Array, start: number, end: number): number {
    const first = bytes[start]!;
    const isDigit = first >= 0x30 && first <= 0x39;
    if (isDigit || first === 0x2d) {
      if (this.#addNumber(bytes, start, end)) return NUMBER;
      return this.temporal && isDigit ? this.#temporalKind(bytes, start, end) : TEXT;
    }
    const length = end - start;
    if (length === 4 && first === 0x74) return matches(bytes, start, "true") ? BOOL : TEXT;
    if (length === 5 && first === 0x66) return matches(bytes, start, "false") ? BOOL : TEXT;
    return TEXT;
  }

  #temporalKind(bytes: Uint8Array, start: number, end: number): number {
    const reader = this.#reader;
    if (end - start === 10) return reader.date(bytes, start, end) ? DATE : TEXT;
    if (reader.instant(bytes, start, end)) return INSTANT;
    return reader.timestamp(bytes, start, end) ? TIMESTAMP : TEXT;
  }

  #addNumber(bytes: Uint8Array, start: number, end: number): boolean {
    const token = this.#token;
    if (token.read(bytes, start, end) !== end || token.exponent) return false;
    if (token.integer && token.negative && token.digits === 0) return false; // −0 would come back as 0
    this.#numbers.addToken(token);
    if (!token.integer) {
      this.#scale = Math.max(this.#scale, token.scale);
      if (this.#floats) this.#floats = isFloat(token, bytes, end);
    }
    return true;
  }
}

function matches(bytes: Uint8Array, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false;
  return true;
}
