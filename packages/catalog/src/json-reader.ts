/** Reads JSON that may come from anywhere: every step is checked, and a failure names the place. */
export class JsonReader {
  readonly #value: unknown;
  readonly #path: string;
  readonly #fail: (reason: string) => never;

  private constructor(value: unknown, path: string, fail: (reason: string) => never) {
    this.#value = value;
    this.#path = path;
    this.#fail = fail;
  }

  /** `fail` throws the error that suits the source; it is given what is wrong and where. */
  static parse(json: Uint8Array | string, fail: (reason: string) => never): JsonReader {
    try {
      const text = typeof json === "string" ? json : new TextDecoder("utf-8", { fatal: true }).decode(json);
      return new JsonReader(JSON.parse(text), "$", fail);
    } catch {
      return fail("it is not JSON");
    }
  }

  fail(reason: string): never {
    return this.#fail(`${this.#path} ${reason}`);
  }

  isNull(): boolean {
    return this.#value === null;
  }

  text(): string {
    return typeof this.#value === "string" ? this.#value : this.fail("is not a text");
  }

  flag(): boolean {
    return typeof this.#value === "boolean" ? this.#value : this.fail("is not true or false");
  }

  /** An integer from `least`, exact in a JavaScript number. */
  count(least = 0, most: number = Number.MAX_SAFE_INTEGER): number {
    const value = this.#value;
    return typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most
      ? value + 0 // −0 is 0
      : this.fail(`is not an integer from ${least} to ${most}`);
  }

  list(): JsonReader[] {
    return Array.isArray(this.#value)
      ? this.#value.map((item, i) => new JsonReader(item, `${this.#path}[${i}]`, this.#fail))
      : this.fail("is not a list");
  }

  get(key: string): JsonReader {
    return this.optional(key) ?? this.fail(`has no ${key}`);
  }

  /** Own keys only: `__proto__` and `constructor` are keys like any other. */
  optional(key: string): JsonReader | undefined {
    const object = this.#object();
    return Object.hasOwn(object, key) ? this.#child(key, object[key]) : undefined;
  }

  entries(): [string, JsonReader][] {
    return Object.entries(this.#object()).map(([key, value]) => [key, this.#child(key, value)]);
  }

  #child(key: string, value: unknown): JsonReader {
    return new JsonReader(value, `${this.#path}.${key}`, this.#fail);
  }

  #object(): Record<string, unknown> {
    const value = this.#value;
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : this.fail("is not an object");
  }
}
