/** CSV records → rows of a batch: the rules of what fits which column. */

import { BAD_QUOTE, BLANK, type CsvConsumer, NullCells, ROW, recordForm } from "./csv-input.js";
import { inferredNumbers } from "./csv-numbers.js";
import { type CsvReader, ESCAPED } from "./csv-reader.js";
import { NumberToken } from "./number-token.js";
import { SchemaMisfit, type TextParserOptions } from "./parser.js";
import { DEFAULT_BATCH_BYTES, type RowBatches, RowFault, rowsPerBatch } from "./row-batches.js";
import { formatType, nameKey } from "./schema.js";
import { createTextAppender, type TextAppender } from "./text-values.js";
import { rawText } from "./utf8.js";

/** The batch that rows are taken into, which may hold others. Where it is full it is cut as the rows are counted. */
export interface CsvBatch {
  /** Rows in it. */
  readonly length: number;
  /** Bytes of input in them. */
  readonly bytes: number;
  /** The last row of `rows` is complete; `bytes` of input went into it. */
  accept(bytes: number): void;
}

export class CsvRows implements CsvConsumer {
  readonly #options: TextParserOptions;
  readonly #batches: RowBatches;
  readonly #batch: CsvBatch;
  readonly #batchRows: number;
  readonly #batchBytes: number;
  readonly #pad: boolean;
  readonly #nulls: NullCells;
  readonly #appenders: readonly TextAppender[];
  /** Columns of the input. */
  #names: readonly string[] = [];
  /** For each field of the schema the column of the input, or −1. */
  #sources: readonly number[] = [];
  /** Columns of the input that the schema does not have. */
  #unknown: readonly number[] = [];
  /** Records that are rows, while a range of them is filled column by column. */
  readonly #range: Int32Array = new Int32Array(1024);

  /** @param rows batches without a limit, in which `batch` takes what is accepted */
  constructor(options: TextParserOptions, rows: RowBatches, batch: CsvBatch) {
    this.#options = options;
    const csv = options.csv ?? {};
    this.#batches = rows;
    this.#batch = batch;
    this.#batchRows = rowsPerBatch(options);
    this.#batchBytes = options.batchBytes ?? DEFAULT_BATCH_BYTES;
    this.#pad = csv.ragged === "pad";
    this.#nulls = new NullCells(csv);
    const token = new NumberToken();
    this.#appenders = this.#batches.columns.map((builder) => {
      const appender = createTextAppender(builder);
      return options.valueMisfits === "misfit" ? inferredNumbers(builder.type, appender, token) : appender;
    });
  }

  /** For each field of the schema the column of the input, or −1; none before there are names. */
  get sources(): readonly number[] {
    return this.#sources;
  }

  columns(names: readonly string[], line: number): void {
    const fields = new Map(this.#options.schema.fields.map((field, index) => [nameKey(field.name), index]));
    const sources = new Array<number>(this.#options.schema.fields.length).fill(-1);
    const unknown: number[] = [];
    for (const [column, name] of names.entries()) {
      const field = fields.get(nameKey(name));
      if (field !== undefined) sources[field] = column;
      else if (this.#options.unknownFields !== "misfit") unknown.push(column);
      else throw new SchemaMisfit(line, `the schema has no field ${JSON.stringify(name)}`);
    }
    this.#names = names;
    this.#sources = sources;
    this.#unknown = unknown;
  }

  records(block: CsvReader, from: number): void {
    const width = this.#names.length;
    const held = this.#batches.root;
    const batch = this.#batch;
    let next = from;
    while (next < block.records) {
      const first = next;
      let rows = 0;
      let bytes = 0;
      let wellFormed = true;
      do {
        const form = recordForm(block, next, width, this.#pad);
        if (form !== BLANK) {
          if (form !== ROW) wellFormed = false;
          this.#range[rows++] = next;
          bytes += block.recordEnds[next]! - block.recordStarts[next]!;
        }
        next++;
      } while (next < block.records && batch.length + rows < this.#batchRows && batch.bytes + bytes < this.#batchBytes);
      // Column by column is the fast way; where a row is at fault, row by row finds it.
      if (wellFormed && this.#fill(block, rows)) {
        for (let i = 0; i < rows; i++) this.#accept(block, this.#range[i]!);
      } else {
        held.truncate(held.length);
        for (let record = first; record < next; record++) this.#row(block, record);
      }
    }
  }

  /** Fills the columns with the records of the range. False where a row is at fault: what was filled must go. */
  #fill(block: CsvReader, rows: number): boolean {
    const builders = this.#batches.columns;
    for (let field = 0; field < builders.length; field++) {
      const builder = builders[field]!;
      const source = this.#sources[field]!;
      if (source === -1) {
        if (!builder.nullable) return false;
        for (let i = 0; i < rows; i++) builder.appendNull();
      } else if (!this.#fillColumn(block, rows, source, field)) return false;
    }
    return this.#options.unknownFields !== "reject" || this.#unknown.length === 0;
  }

  #fillColumn(block: CsvReader, rows: number, source: number, field: number): boolean {
    const builder = this.#batches.columns[field]!;
    const appender = this.#appenders[field]!;
    const nulls = this.#nulls;
    const range = this.#range;
    const { recordCells } = block;
    for (let i = 0; i < rows; i++) {
      const record = range[i]!;
      const cell = recordCells[record]! + source;
      if (cell >= recordCells[record + 1]! || nulls.has(block, cell)) {
        if (!builder.nullable) return false;
        builder.appendNull();
      } else if (!appendCell(block, cell, appender)) return false;
    }
    return true;
  }

  #row(block: CsvReader, record: number): void {
    const form = recordForm(block, record, this.#names.length, this.#pad);
    if (form === BLANK) return;
    const fault = form === ROW ? this.#fillRow(block, record) : formFault(block, record, form, this.#names.length);
    if (fault)
      this.#batches.refuse(
        fault,
        block.recordLines[record]!,
        rawText(block.bytes, block.recordStarts[record]!, block.recordEnds[record]!),
      );
    else this.#accept(block, record);
  }

  /** Fills the columns with one record, or says what is wrong with it. */
  #fillRow(block: CsvReader, record: number): RowFault | undefined {
    const { fields } = this.#options.schema;
    // No schema of inference mends this, so that it must not hide a value which inference counts.
    let missing: RowFault | undefined;
    for (const [index, field] of fields.entries()) {
      const source = this.#sources[index]!;
      const cell = block.recordCells[record]! + source;
      const name = JSON.stringify(field.name);
      if (source === -1 || cell >= block.recordCells[record + 1]! || this.#nulls.has(block, cell)) {
        if (field.nullable) this.#batches.columns[index]!.appendNull();
        else missing ??= new RowFault("form", "missing_value", `the column ${name} may not be null`);
        continue;
      }
      if (!appendCell(block, cell, this.#appenders[index]!)) {
        return new RowFault("value", "type_mismatch", `${name}: the text is no ${formatType(field.type)}`);
      }
    }
    if (this.#options.unknownFields === "reject") {
      for (const column of this.#unknown) {
        const name = JSON.stringify(this.#names[column]);
        if (this.#hasValue(block, record, column))
          return new RowFault("field", "unknown_field", `the schema has no field ${name}`);
      }
    }
    return missing;
  }

  #hasValue(block: CsvReader, record: number, column: number): boolean {
    const cell = block.recordCells[record]! + column;
    return cell < block.recordCells[record + 1]! && !this.#nulls.has(block, cell);
  }

  #accept(block: CsvReader, record: number): void {
    if (this.#options.unknownFields === "ignore") {
      for (const column of this.#unknown)
        if (this.#hasValue(block, record, column)) this.#batches.ignore(this.#names[column]!);
    }
    this.#batch.accept(block.recordEnds[record]! - block.recordStarts[record]!);
  }
}

function formFault(block: CsvReader, record: number, form: number, width: number): RowFault {
  if (form === BAD_QUOTE) return new RowFault("form", "bad_quote", "text follows a closing quote");
  const cells = block.recordCells[record + 1]! - block.recordCells[record]!;
  return new RowFault("form", "ragged_row", `expected ${width} cells, found ${cells}`);
}

function appendCell(block: CsvReader, cell: number, appender: TextAppender): boolean {
  if ((block.cellFlags[cell]! & ESCAPED) === 0)
    return appender.append(block.bytes, block.cellStarts[cell]!, block.cellEnds[cell]!);
  const text = block.unescape(cell);
  return appender.append(text, 0, text.length);
}
