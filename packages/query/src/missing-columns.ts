/** What a statement reads in spite of its plan. */

import { QueryError } from "@eider/core";
import type { RunningQuery } from "./engine-query.js";

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

/**
 * Starts a statement. One that turns out to read columns that its plan does not name is planned and run again with all
 * columns, unless some of its rows have been given out.
 */
export async function startWithColumns(start: (allColumns: boolean) => Promise<RunningQuery>): Promise<RunningQuery> {
  let running = await start(false).catch((error: unknown) => {
    if (error instanceof MissingColumns) return start(true);
    throw error;
  });
  return {
    shape: running.shape,
    async *chunks() {
      let delivered = false;
      try {
        for await (const chunk of running.chunks()) {
          delivered = true;
          yield chunk;
        }
        return;
      } catch (error) {
        if (delivered || !(error instanceof MissingColumns)) throw error;
      }
      await running.close();
      running = await start(true);
      yield* running.chunks();
    },
    stats: () => running.stats(),
    close: () => running.close(),
  };
}
