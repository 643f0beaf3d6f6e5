/**
 * What must hold of a cursor and what is derived along it: each change of the table is taken once, in order, and what came
 * of it was committed with the move, so that a consumer may be killed or repeated anywhere.
 */

import type { Entry } from "../../../catalog/src/entry.js";
import { parsePosition } from "../../../catalog/src/position.js";
import { CONSUMED, CURSORS, DERIVED, derivedFrom } from "./workload.js";

/** A change of a table of the name that is consumed, and the position behind it. */
interface Change {
  readonly table: string;
  readonly position: string;
}

export function checkFeed(log: readonly Entry[], problems: string[]): void {
  const names = new Map<string, string>();
  const changes: Change[] = [];
  const positions = new Map<string, string>();
  for (const { n, operations } of log) {
    for (const operation of operations) {
      if (operation.op === "schema" && operation.create) names.set(operation.table, operation.create.name);
    }
    const moves = operations.filter((operation) => operation.op === "cursor");
    const derived = operations.flatMap((operation) =>
      operation.op === "append" && names.get(operation.table) === DERIVED ? [operation.batch] : [],
    );
    for (const { name, from, to } of moves) {
      const position = positions.get(name) ?? "0";
      if (from !== position) problems.push(`entry ${n} moves the cursor ${name} from ${from}, it was at ${position}`);
      positions.delete(name);
      if (to === undefined) continue; // it ends
      positions.set(name, to);
      const taken = changes.find((change) => change.position === to);
      if (!taken) problems.push(`entry ${n} moves the cursor to ${to}, where nothing was`);
      const missed = changes.filter(
        ({ table, position: at }) => table === taken?.table && isBefore(from, at) && isBefore(at, to),
      );
      if (missed.length > 0) problems.push(`entry ${n} moves the cursor past ${missed.map((c) => c.position).join()}`);
    }
    const deriving = moves.filter(({ name }) => name === CURSORS.consume);
    const expected = deriving.map(({ to = "" }) => derivedFrom(to).batchId);
    if (derived.join() !== expected.join()) {
      problems.push(`entry ${n} derives ${derived.join()} and moves the cursor for ${expected.join()}`);
    }
    changes.push(...changesOf(n, operations, names));
  }
}

/** In one entry each table has its own count. */
function changesOf(n: number, operations: Entry["operations"], names: ReadonlyMap<string, string>): Change[] {
  const tables = operations.flatMap((operation) =>
    (operation.op === "append" || operation.op === "rollback") && names.get(operation.table) === CONSUMED
      ? [operation.table]
      : [],
  );
  return tables.map((table, i) => {
    const before = tables.slice(0, i + 1).filter((other) => other === table).length;
    const all = tables.filter((other) => other === table).length;
    return { table, position: before === all ? `${n}` : `${n}.${before}` };
  });
}

function isBefore(a: string, b: string): boolean {
  const [x, y] = [parsePosition(a), parsePosition(b)];
  return (
    x.snapshot - y.snapshot < 0 || (x.snapshot === y.snapshot && (x.changes ?? Infinity) < (y.changes ?? Infinity))
  );
}
