/**
 * A reader of FlatBuffers tables that trusts nothing: every access is within the bytes, or throws a RangeError (which
 * `DataView` does by itself), and no count makes anything large.
 */

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class FlatTable {
  readonly #view: DataView;
  readonly #at: number;
  readonly #vtable: number;
  readonly #vtableBytes: number;

  private constructor(view: DataView, at: number) {
    this.#view = view;
    this.#at = at;
    this.#vtable = at - view.getInt32(at, true);
    this.#vtableBytes = view.getUint16(this.#vtable, true);
  }

  /** The root table of a buffer. */
  static root(bytes: Uint8Array): FlatTable {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return new FlatTable(view, view.getUint32(0, true));
  }

  /** Where the table lies in its buffer: what an offset to it points to. */
  get at(): number {
    return this.#at;
  }

  /** Where field number `field` lies; 0 if it is absent and has its default. */
  #position(field: number): number {
    const slot = 4 + 2 * field;
    const offset = slot + 2 <= this.#vtableBytes ? this.#view.getUint16(this.#vtable + slot, true) : 0;
    return offset === 0 ? 0 : this.#at + offset;
  }

  int8(field: number, absent: number): number {
    const at = this.#position(field);
    return at === 0 ? absent : this.#view.getInt8(at);
  }

  int16(field: number, absent: number): number {
    const at = this.#position(field);
    return at === 0 ? absent : this.#view.getInt16(at, true);
  }

  int32(field: number, absent: number): number {
    const at = this.#position(field);
    return at === 0 ? absent : this.#view.getInt32(at, true);
  }

  /** As a number: counts and sizes above 2^53 are rounded, and too large for anything. */
  int64(field: number): number {
    const at = this.#position(field);
    return at === 0 ? 0 : Number(this.#view.getBigInt64(at, true));
  }

  bool(field: number): boolean {
    return this.int8(field, 0) !== 0;
  }

  table(field: number): FlatTable | undefined {
    const at = this.#position(field);
    return at === 0 ? undefined : new FlatTable(this.#view, this.#target(at));
  }

  text(field: number): string | undefined {
    const at = this.#position(field);
    if (at === 0) return undefined;
    const start = this.#target(at);
    const length = this.#count(start, 1);
    return DECODER.decode(new Uint8Array(this.#view.buffer, this.#view.byteOffset + start + 4, length));
  }

  tables(field: number): FlatTable[] {
    return this.#elements(field, 4, (at) => new FlatTable(this.#view, this.#target(at)));
  }

  /** Structs of `size` bytes, as their 64-bit integers. */
  longs(field: number, size: number): number[][] {
    return this.#elements(field, size, (at) =>
      Array.from({ length: size / 8 }, (_, i) => Number(this.#view.getBigInt64(at + 8 * i, true))),
    );
  }

  #elements<T>(field: number, size: number, read: (at: number) => T): T[] {
    const at = this.#position(field);
    if (at === 0) return [];
    const start = this.#target(at);
    return Array.from({ length: this.#count(start, size) }, (_, i) => read(start + 4 + i * size));
  }

  /** Where an offset, which counts from its own place, points to. */
  #target(at: number): number {
    return at + this.#view.getUint32(at, true);
  }

  /** The length of a vector, all of which lies in the buffer. */
  #count(start: number, size: number): number {
    const count = this.#view.getUint32(start, true);
    if (start + 4 + count * size > this.#view.byteLength) throw new RangeError("a vector ends outside of its message");
    return count;
  }
}
