/** What listings of snapshots and changes show of an entry, so that they need not read its files and statistics. */

import type { Meta, Operation } from "./catalog.js";
import { draftsOf, type Entry } from "./entry.js";

/** As JSON. Operations have a meta of their own where several appends share the entry. */
export function summarize(entry: Entry): string {
  const operations = draftsOf(entry).flatMap(({ operations: own, meta }) =>
    own.map((operation) => summarizeOperation(operation, entry.members ? meta : {})),
  );
  return JSON.stringify({ operations, meta: entry.meta });
}

function summarizeOperation(operation: Operation, meta: Meta): object {
  switch (operation.op) {
    case "append": {
      const { op, table, batch: batchId, rows, hash } = operation;
      const rejected = operation.rejects.length;
      return {
        op,
        table,
        batchId,
        rows,
        ...(rejected > 0 && { rejected }),
        hash,
        ...(Object.keys(meta).length > 0 && { meta }),
      };
    }
    case "rollback":
      return { op: operation.op, table: operation.table, to: operation.to };
    case "cursor":
    case "tag":
    case "view":
      return { op: operation.op, name: operation.name };
    case "expire":
    case "floor":
      return { op: operation.op };
    default:
      return { op: operation.op, table: operation.table };
  }
}
