/** The id of a reject: `<snapshot>-<ordinal>`, the entry that it came with and its place among the rejects of that. */

export interface RejectPlace {
  readonly snapshot: number;
  /** From 0. */
  readonly ordinal: number;
}

export function rejectId({ snapshot, ordinal }: RejectPlace): string {
  return `${snapshot}-${ordinal}`;
}

/** Undefined for a text that is the id of no reject; each reject has one id. */
export function rejectPlace(id: string): RejectPlace | undefined {
  const parts = /^([1-9]\d{0,15})-(0|[1-9]\d{0,15})$/.exec(id);
  if (!parts) return undefined;
  const [snapshot, ordinal] = [Number(parts[1]), Number(parts[2])];
  return Number.isSafeInteger(snapshot) && Number.isSafeInteger(ordinal) ? { snapshot, ordinal } : undefined;
}

/** In the order in which they were committed. */
export function compareRejectIds(a: string, b: string): number {
  const [one, other] = [rejectPlace(a), rejectPlace(b)];
  if (!one || !other) throw new Error(`${one ? b : a} is not the id of a reject`);
  return one.snapshot - other.snapshot || one.ordinal - other.ordinal;
}

/** The ordinals of rejects by their snapshot. */
export function ordinalsBySnapshot(ids: readonly string[]): Map<number, Set<number>> {
  const found = new Map<number, Set<number>>();
  for (const id of ids) {
    const place = rejectPlace(id);
    if (!place) throw new Error(`${id} is not the id of a reject`);
    const ordinals = found.get(place.snapshot);
    if (ordinals) ordinals.add(place.ordinal);
    else found.set(place.snapshot, new Set([place.ordinal]));
  }
  return found;
}
