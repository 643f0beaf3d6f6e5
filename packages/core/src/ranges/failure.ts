/** Errors on their way between threads: what makes them what they are is lost when they are cloned. */

import { InvalidInputError, type RowProblem, SchemaError, SchemaMisfit } from "../index.js";

/** A failure as plain data. */
export type Failure =
  | { readonly kind: "misfit"; readonly line: number; readonly reason: string }
  | {
      readonly kind: "input" | "schema";
      readonly code: string;
      readonly message: string;
      readonly subject: string | undefined;
      readonly rows: readonly RowProblem[];
      readonly cause: unknown;
    }
  | { readonly kind: "other"; readonly error: unknown };

export function packFailure(error: unknown): Failure {
  if (error instanceof SchemaMisfit) {
    return { kind: "misfit", line: error.line, reason: error.message.slice(`line ${error.line}: `.length) };
  }
  if (error instanceof InvalidInputError || error instanceof SchemaError) {
    const { code, message, subject, cause } = error;
    const isInput = error instanceof InvalidInputError;
    return { kind: isInput ? "input" : "schema", code, message, subject, rows: isInput ? error.rows : [], cause };
  }
  return { kind: "other", error };
}

export function unpackFailure(failure: Failure): unknown {
  switch (failure.kind) {
    case "misfit":
      return new SchemaMisfit(failure.line, failure.reason);
    case "other":
      return failure.error;
    default: {
      const { kind, code, message, subject, rows, cause } = failure;
      const details = { ...(subject !== undefined && { subject }), ...(cause !== undefined && { cause }) };
      return kind === "input"
        ? new InvalidInputError(code, message, { ...details, rows })
        : new SchemaError(code, message, details);
    }
  }
}
