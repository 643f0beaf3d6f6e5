/**
 * Memory: a bump arena that is emptied as a whole. What lies below it (tables, plan, input) is laid out by TypeScript.
 */

/** Where the arena begins, and the first free byte of it. */
let base: usize = 0;
let top: usize = 0;

/** Vector stores may go this far beyond the end of a value. */
export const SLACK: usize = 32;

/** Makes the memory at least `end` bytes long. Traps where it cannot grow: the caller's batch is too large. */
export function reach(end: usize): void {
  const pages = <i32>((end + 0xffff) >>> 16);
  const missing = pages - memory.size();
  if (missing <= 0) return;
  // By an eighth more, so that a slowly growing batch does not ask for every page.
  if (memory.grow(missing + (pages >>> 3)) >= 0) return;
  if (memory.grow(missing) < 0) unreachable();
}

/** First byte that static data does not use. */
export function heapBase(): usize {
  return __heap_base;
}

/** The arena begins at `address` and is empty. */
export function beginArena(address: usize): void {
  base = (address + 15) & ~15;
  top = base;
}

/** The first free byte of the arena. */
export function arenaTop(): usize {
  return top;
}

/** Takes back all allocations. */
export function resetArena(): void {
  top = base;
}

/** Bytes that are not initialized, aligned to 16, with {@link SLACK} behind them. */
export function allocate(size: usize): usize {
  const at = top;
  const end = (at + size + SLACK + 15) & ~15;
  if (end < at) unreachable();
  reach(end);
  top = end;
  return at;
}
