/**
 * The public error kinds. Each tells the caller what to do next; `code` is stable and may be switched on.
 * No message contains a credential, and none contains a row's values unless the caller asked for it.
 */

/** What every Eider error carries beyond its message. */
export interface ErrorDetails {
  /** What failed first, if anything did. */
  readonly cause?: unknown;
  /** The thing concerned: a table, a batch id, an object key, a column. */
  readonly subject?: string;
}

/** Base of every error that Eider throws on purpose. */
export abstract class EiderError extends Error {
  /** The kind, as its class is called here: a bundler may call the class otherwise. */
  abstract override readonly name: string;
  /** Stable, lower_snake_case. */
  readonly code: string;
  readonly subject: string | undefined;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.subject = details.subject;
  }
}

/** One row that could not be taken. */
export interface RowProblem {
  /** 1-based line of the input for text formats, 1-based row number otherwise. */
  readonly line: number;
  /** Stable reason code, for example `bad_json`, `type_mismatch`, `ragged_row`. */
  readonly code: string;
  /** What is wrong, without the row's values. */
  readonly reason: string;
}

/** A row kept aside with its reason. */
export interface Reject extends RowProblem {
  /** The row as it came, as text, cut at 64 KiB. */
  readonly raw: string;
}

/** The input is wrong: fix it and append again. Nothing was committed. */
export class InvalidInputError extends EiderError {
  override readonly name: string = "InvalidInputError";
  /** The first rows at fault, at most 20. */
  readonly rows: readonly RowProblem[];

  constructor(code: string, message: string, details: ErrorDetails & { rows?: readonly RowProblem[] } = {}) {
    super(code, message, details);
    this.rows = details.rows ?? [];
  }
}

/** The table's schema or options do not allow this: change the schema, the options or the `schemaMode`. */
export class SchemaError extends EiderError {
  override readonly name: string = "SchemaError";
}

/** This batch id is already committed with other content: choose another id. The first batch stays. */
export class BatchConflictError extends EiderError {
  override readonly name: string = "BatchConflictError";
}

/** No such lake, table, batch, snapshot or object. */
export class NotFoundError extends EiderError {
  override readonly name: string = "NotFoundError";
}

/** It exists already and may not be created again. */
export class AlreadyExistsError extends EiderError {
  override readonly name: string = "AlreadyExistsError";
}

/** The store failed. `retryable` says whether the same call may succeed later. */
export class StoreError extends EiderError {
  override readonly name: string = "StoreError";
  readonly retryable: boolean;
  /** Milliseconds after which the store wants to be asked again, if it said so. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: string,
    message: string,
    details: ErrorDetails & { retryable?: boolean; retryAfterMs?: number | undefined } = {},
  ) {
    super(code, message, details);
    this.retryable = details.retryable ?? false;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** The catalog failed or cannot be used. `retryable` says whether the same call may succeed later. */
export class CatalogError extends EiderError {
  override readonly name: string = "CatalogError";
  readonly retryable: boolean;

  constructor(code: string, message: string, details: ErrorDetails & { retryable?: boolean } = {}) {
    super(code, message, details);
    this.retryable = details.retryable ?? false;
  }
}

/** The SQL is wrong. `position` is the 0-based character offset in the text, when known. */
export class QueryError extends EiderError {
  override readonly name: string = "QueryError";
  readonly position: number | undefined;

  constructor(code: string, message: string, details: ErrorDetails & { position?: number } = {}) {
    super(code, message, details);
    this.position = details.position;
  }
}

/** A limit of size, time or memory was reached. */
export class LimitError extends EiderError {
  override readonly name: string = "LimitError";
}

/** Stored bytes are not what was committed: stop, and run `lake.verify()`. */
export class CorruptionError extends EiderError {
  override readonly name: string = "CorruptionError";
}
