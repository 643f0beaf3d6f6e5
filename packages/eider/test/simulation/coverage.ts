/** Which combinations of operation, step and fault were hit, and how often. */

export class Coverage {
  readonly #hits = new Map<string, number>();

  hit(operation: string, step: string, fault: string): void {
    const key = `${operation}\t${step}\t${fault}`;
    this.#hits.set(key, (this.#hits.get(key) ?? 0) + 1);
  }

  /** Takes over what another one counted. */
  add(entries: Iterable<readonly [string, number]>): void {
    for (const [key, count] of entries) this.#hits.set(key, (this.#hits.get(key) ?? 0) + count);
  }

  entries(): [string, number][] {
    return [...this.#hits];
  }

  count(operation: string, step: string, fault: string): number {
    return this.#hits.get(`${operation}\t${step}\t${fault}`) ?? 0;
  }

  /** A line per step and fault, a column per operation. */
  report(): string {
    const operations = [...new Set([...this.#hits.keys()].map((key) => key.split("\t")[0]!))].sort();
    const rows = new Map<string, Map<string, number>>();
    for (const [key, count] of this.#hits) {
      const [operation = "", ...row] = key.split("\t");
      const name = row.join(", ");
      rows.set(name, (rows.get(name) ?? new Map<string, number>()).set(operation, count));
    }
    const line = (name: string, cells: readonly unknown[]): string =>
      name.padEnd(40) + cells.map((cell) => String(cell ?? "-").padStart(12)).join("");
    const lines = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
    return [
      line("step, fault", operations),
      ...lines.map(([name, counts]) =>
        line(
          name,
          operations.map((operation) => counts.get(operation)),
        ),
      ),
    ].join("\n");
  }
}
