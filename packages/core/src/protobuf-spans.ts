/** Where the values of the fields of a message are: chains of positions, on a stack that embedded messages share. */

/** Integers of a span: the next and the previous one of its chain, where it begins and ends, its wire type. */
const SIZE = 5;

/** No span. */
export const NONE = -1;

export class Spans {
  #data: Int32Array = new Int32Array(64 * SIZE);
  /** The next span; setting it back forgets those from there on. */
  top = 0;

  /** Adds a span to the end of the chain whose last one is `previous`. */
  push(previous: number, start: number, end: number, wire: number): number {
    const at = this.top;
    if (at + SIZE > this.#data.length) {
      const grown = new Int32Array(this.#data.length * 2);
      grown.set(this.#data);
      this.#data = grown;
    }
    const data = this.#data;
    data[at] = NONE;
    data[at + 1] = previous;
    data[at + 2] = start;
    data[at + 3] = end;
    data[at + 4] = wire;
    if (previous !== NONE) data[previous] = at;
    this.top = at + SIZE;
    return at;
  }

  next(span: number): number {
    return this.#data[span]!;
  }

  previous(span: number): number {
    return this.#data[span + 1]!;
  }

  start(span: number): number {
    return this.#data[span + 2]!;
  }

  end(span: number): number {
    return this.#data[span + 3]!;
  }

  wire(span: number): number {
    return this.#data[span + 4]!;
  }

  /** The span counts no more. */
  drop(span: number): void {
    this.#data[span + 4] = NONE;
  }
}
