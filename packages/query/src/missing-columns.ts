/** What a statement reads in spite of its plan. */

import { QueryError } from "@eider/core";

/** A column was read that no copy has, since the plan by which columns were fetched did not name it. */
export class MissingColumns extends QueryError {
  constructor(cause: unknown) {
    super(
      "column_not_copied",
      "a column was read that the statement's plan does not name: run it with { prune: false }",
      {
        cause,
      },
    );
  }
}

/** What DuckDB 1.5 says of the offsets of columns that a copy does not have. */
export function isMissingColumn(message: string): boolean {
  return message.startsWith("Prefetch registered for bytes outside file");
}
