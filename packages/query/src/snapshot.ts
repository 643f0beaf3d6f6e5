/** Which snapshot is meant. */

import type { Catalog } from "@eider/catalog";
import { QueryError } from "@eider/core";
import type { BoundParameters } from "./parameters.js";
import type { TimeTravel } from "./statement.js";

/** `2031-02-03`, `2031-02-03 04:05`, `2031-02-03T04:05:06.789012Z`, `…+09:00`. Without a zone it is UTC. */
const INSTANT = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d+))?)?)?\s*(Z|[+-]\d{2}(?::?\d{2})?)?$/i;

/**
 * Number of the snapshot: the head by default, a number (or digits) itself, for an instant the last one up to it, for a tag
 * the one that it names. Instants begin with a digit, tags never do.
 * @throws QueryError `bad_snapshot`; NotFoundError `snapshot_not_found`, `tag_not_found`
 */
export async function snapshotOf(catalog: Catalog, at: number | string | Date | undefined): Promise<number> {
  if (at === undefined) return (await catalog.head()).snapshot;
  if (typeof at === "string") {
    if (/^\d+$/.test(at)) return catalog.resolveSnapshot(Number(at));
    return catalog.resolveSnapshot(/^\s*\d/.test(at) ? toDate(at) : { tag: at });
  }
  const valid = typeof at === "number" ? Number.isSafeInteger(at) && at >= 0 : !Number.isNaN(at.getTime());
  if (!valid) throw new QueryError("bad_snapshot", `${String(at)} is neither a snapshot's number nor an instant`);
  return catalog.resolveSnapshot(at);
}

/** What an `AT` says, for {@link snapshotOf}. @throws QueryError `bad_snapshot` */
export function travelTarget(travel: TimeTravel, values: BoundParameters): number | string | Date {
  const { value, by } = travel;
  const target = typeof value === "string" ? value : values.get(value.name);
  const number = typeof target === "bigint" ? Number(target) : target;
  if (by === "version") {
    if (typeof number === "number") return number;
    // A number, or a tag.
    if (typeof number === "string" && (/^\d+$/.test(number) || /^\D/.test(number))) return number;
  } else if (number instanceof Date || (typeof number === "string" && /^\s*\d/.test(number))) return number;
  throw new QueryError(
    "bad_snapshot",
    by === "version"
      ? "AT (VERSION => …) takes a snapshot's number or tag"
      : "AT (TIMESTAMP => …) takes a Date or ISO 8601 text",
    { position: travel.start },
  );
}

function toDate(text: string): Date {
  const m = INSTANT.exec(text.trim());
  const fail = (): never => {
    throw new QueryError(
      "bad_snapshot",
      `${JSON.stringify(text)} is no instant: write it like 2031-02-03T04:05:06Z (UTC where no zone is given)`,
    );
  };
  if (!m) return fail();
  const [, day, minutes = "00:00", seconds = "00", fraction = "", zone = "Z"] = m;
  // Snapshots have whole milliseconds: what is finer changes nothing.
  const millis = fraction.slice(0, 3).padEnd(3, "0");
  const offset = zone.toUpperCase() === "Z" ? "Z" : `${zone.slice(0, 3)}:${zone.slice(3).replace(":", "") || "00"}`;
  const date = new Date(`${day}T${minutes}:${seconds}.${millis}${offset}`);
  return Number.isNaN(date.getTime()) ? fail() : date;
}
