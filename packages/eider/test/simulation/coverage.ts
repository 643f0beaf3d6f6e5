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

  /** A line per operation and step, with how often each fault was hit there. */
  report(): string {
    const lines = new Map<string, string[]>();
    for (const [key, count] of [...this.#hits].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const [operation = "", step = "", fault = ""] = key.split("\t");
      const line = `${operation.padEnd(12)} ${step.padEnd(24)}`;
      lines.set(line, [...(lines.get(line) ?? []), `${fault} ${count}`]);
    }
    return [...lines].map(([line, faults]) => `${line} ${faults.join(", ")}`).join("\n");
  }
}
