/** Edits of a text that remember where each character came from, so that an error's position can be told in the original. */

interface Edit {
  /** Characters `[start, end)` of the original. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export class TextEdits {
  readonly #original: string;
  readonly #edits: Edit[] = [];

  constructor(original: string) {
    this.#original = original;
  }

  /** Puts `text` in place of `[start, end)` of the original. Ranges may not overlap. */
  replace(start: number, end: number, text: string): void {
    this.#edits.push({ start, end, text });
    this.#edits.sort((a, b) => a.start - b.start);
  }

  apply(): string {
    let out = "";
    let at = 0;
    for (const { start, end, text } of this.#edits) {
      out += this.#original.slice(at, start) + text;
      at = end;
    }
    return out + this.#original.slice(at);
  }

  /** Where a character of the edited text stands in the original; inside an edit: where the edit begins. */
  originalPosition(position: number): number {
    let shift = 0;
    for (const { start, end, text } of this.#edits) {
      const editedStart = start + shift;
      if (position < editedStart) break;
      if (position < editedStart + text.length) return start;
      shift += text.length - (end - start);
    }
    return position - shift;
  }
}
