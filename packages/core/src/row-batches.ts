/** Rows one after the other into record batches; rows that cannot be taken into rejects. Shared by all parsers. */

import { type Builder, StructBuilder } from "./builders.js";
import type { RecordBatch } from "./columns.js";
import { InvalidInputError, type Reject, type RowProblem } from "./errors.js";
import { type ParserOptions, SchemaMisfit } from "./parser.js";
import { childFields, type Field, type Schema, storedSchema } from "./schema.js";

/** Largest row, in bytes of its text. Bounds the memory that a missing line end or quote can take. */
export const MAX_ROW_BYTES: number = 16 * 1024 * 1024;

/** Objects and arrays in each other, the row itself included. Deeper rows, and cyclic objects, are refused. */
export const MAX_DEPTH = 100;

const DEFAULT_BATCH_ROWS = 100_000;
/** Values per batch where nobody says how many rows: bounds the memory of tables with thousands of columns. */
const DEFAULT_BATCH_VALUES = 16 * 1024 * 1024;
export const DEFAULT_BATCH_BYTES: number = 32 * 1024 * 1024;
export const DEFAULT_MAX_REJECTS = 10_000;

/** Rows named in an error. */
const NAMED_ROWS = 20;

/**
 * Why a row cannot be taken. Thrown by readers and caught for each row; never leaves the package, and is not an
 * `Error` because nobody needs its stack.
 *
 * - `form`: the row itself is wrong, under any schema.
 * - `field`: the schema does not have a key of the row.
 * - `value`: a value does not fit its column; under another schema it might.
 */
export class RowFault {
  readonly about: "form" | "field" | "value";
  readonly code: string;
  readonly reason: string;

  constructor(about: "form" | "field" | "value", code: string, reason: string) {
    this.about = about;
    this.code = code;
    this.reason = reason;
  }
}

/**
 * A fault that waits for the end of its row. What another schema would not mend is reported only if nothing else is
 * wrong with the row: else it would hide a key or a value that inference counts.
 */
export class PendingFault {
  #fault: RowFault | undefined;

  clear(): void {
    this.#fault = undefined;
  }

  /** Notes a fault; the first one counts. */
  note(fault: RowFault): void {
    this.#fault ??= fault;
  }

  /** @throws RowFault */
  raise(): void {
    if (this.#fault) throw this.#fault;
  }
}

/** Rows that fill a batch. */
export function rowsPerBatch({ batchRows, schema }: ParserOptions): number {
  if (batchRows !== undefined) return batchRows;
  const leaves = ({ type }: Field): number => {
    const children = childFields(type);
    return children.length === 0 ? 1 : children.reduce((sum, child) => sum + leaves(child), 0);
  };
  const columns = schema.fields.reduce((sum, field) => sum + leaves(field), 0);
  return Math.max(1, Math.min(DEFAULT_BATCH_ROWS, Math.floor(DEFAULT_BATCH_VALUES / Math.max(1, columns))));
}

/** The error for more rejects than are allowed; the last of `rejects` is the one too many. */
export function tooManyRejects(rejects: readonly Reject[], maxRejects: number): InvalidInputError {
  const rows = rejects
    .slice(0, Math.min(NAMED_ROWS, maxRejects))
    .map(({ line, code, reason }): RowProblem => ({ line, code, reason }));
  const { line, reason } = rejects[0]!;
  return new InvalidInputError(
    "too_many_rejects",
    `more than ${maxRejects} rows cannot be taken; the first is line ${line}: ${reason}. ` +
      "Fix the input, or raise maxRejects.",
    { rows },
  );
}

/** Collects one row after the other: fill {@link columns}, then {@link accept} or {@link refuse}. */
export class RowBatches {
  /** The schema's fields as a struct that is never null, unknown fields included. */
  readonly root: StructBuilder;
  readonly rejects: Reject[] = [];
  readonly ignoredFields: Map<string, number> = new Map();
  readonly #options: ParserOptions;
  readonly #stored: Schema;
  readonly #batchRows: number;
  readonly #batchBytes: number;
  readonly #maxRejects: number;
  readonly #ready: RecordBatch[] = [];
  /** Keys dropped from the row being read. */
  readonly #ignoredInRow: string[] = [];
  #finishedRows = 0;
  #bytes = 0;

  constructor(options: ParserOptions) {
    this.#options = options;
    this.#stored = storedSchema(options.schema);
    this.#batchRows = rowsPerBatch(options);
    this.#batchBytes = options.batchBytes ?? DEFAULT_BATCH_BYTES;
    this.#maxRejects = options.maxRejects ?? DEFAULT_MAX_REJECTS;
    this.root = new StructBuilder({ kind: "struct", fields: options.schema.fields }, false, options.schema.fields);
  }

  /** One builder per field of the schema, in its order. */
  get columns(): readonly Builder[] {
    return this.root.children;
  }

  /** Rows taken so far. */
  get rows(): number {
    return this.#finishedRows + this.root.length;
  }

  /** The row is complete: every column holds one value more. `bytes` of input (or an estimate) went into it. */
  accept(bytes: number): void {
    this.root.append();
    this.#bytes += bytes;
    if (this.#ignoredInRow.length > 0) {
      for (const key of this.#ignoredInRow) this.ignoredFields.set(key, (this.ignoredFields.get(key) ?? 0) + 1);
      this.#ignoredInRow.length = 0;
    }
    if (this.root.length >= this.#batchRows || this.#bytes >= this.#batchBytes) this.flush();
  }

  /** A key of the row is dropped, with `unknownFields: "ignore"`. Counts when the row is accepted. */
  ignore(key: string): void {
    this.#ignoredInRow.push(key);
  }

  /**
   * The row cannot be taken: what it left in the columns is removed, and it becomes a reject.
   * @throws SchemaMisfit where the options leave the decision to the caller
   * @throws InvalidInputError `too_many_rejects`
   */
  refuse(fault: RowFault, line: number, raw: string): void {
    const { unknownFields, valueMisfits } = this.#options;
    const policy = fault.about === "field" ? unknownFields : fault.about === "value" ? valueMisfits : "reject";
    if (policy === "misfit") throw new SchemaMisfit(line, fault.reason);
    this.rollBack();
    this.rejects.push({ line, code: fault.code, reason: fault.reason, raw });
    if (this.rejects.length > this.#maxRejects) throw tooManyRejects(this.rejects, this.#maxRejects);
  }

  /** Removes what the row being read has left in the columns. */
  rollBack(): void {
    this.root.truncate(this.root.length);
    this.#ignoredInRow.length = 0;
  }

  /** Makes a batch of the rows so far. */
  flush(): void {
    const { length } = this.root;
    if (length === 0) return;
    this.#ready.push({ schema: this.#stored, length, columns: this.root.finish().children });
    this.#finishedRows += length;
    this.#bytes = 0;
  }

  /** The next finished batch. */
  take(): RecordBatch | undefined {
    return this.#ready.shift();
  }
}
