/**
 * The framing of Arrow IPC (columnar format, "Encapsulated message format"): cuts bytes into messages and proves that
 * the stream is whole, which the Arrow library leaves open: it takes any end of input for the end of the data.
 */

import type * as Arrow from "apache-arrow";
import { InvalidInputError } from "./errors.js";

/** First and last bytes of the file format. */
const MAGIC = [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31];
/** At the beginning, with its padding. */
const MAGIC_BYTES = 8;

/** Metadata is kilobytes; a larger length means that this is not Arrow. */
const MAX_METADATA_BYTES = 64 * 1024 * 1024;

type MessageDecoder = Pick<typeof Arrow.Message, "decode">;

/**
 * The messages of a stream or file, as bytes of a stream: whole messages only, up to the end marker. A file is read
 * front to back, as the stream that it contains, so that its size does not matter (but see {@link hasSchema}).
 * @throws InvalidInputError `truncated_arrow`, `bad_arrow`
 */
export async function* arrowMessages(
  source: AsyncIterable<Uint8Array>,
  decoder: MessageDecoder,
): AsyncGenerator<Uint8Array> {
  const input = new ByteQueue(source);
  try {
    const beginning = await input.peek(MAGIC.length);
    if (beginning.length < MAGIC.length) truncated();
    const isFile = startsWithMagic(beginning);
    if (isFile && !(await hasSchema(input, decoder))) {
      const file = await input.rest();
      if (!startsWithMagic(file.subarray(-MAGIC.length)) || file.length < 2 * MAGIC.length) truncated();
      yield file;
      return;
    }
    if (isFile) await input.take(MAGIC_BYTES);
    const dictionaries = new Set<number>();
    for (let first = true; ; first = false) {
      const metadata = await takeMetadata(input);
      if (metadata === undefined) break;
      const message = decoder.decode(metadata);
      if (first !== message.isSchema()) {
        throw badArrow(first ? "it does not begin with a schema" : "it has a second schema");
      }
      if (message.isDictionaryBatch()) {
        const { id, isDelta } = message.header() as { id: number; isDelta: boolean };
        if (isDelta && !dictionaries.has(id)) throw badArrow(`it adds to dictionary ${id}, which it never sent`);
        dictionaries.add(id);
      }
      yield encapsulated(metadata);
      const { bodyLength } = message;
      if (!(bodyLength >= 0 && bodyLength <= 0x7fffffff)) throw badArrow(`a message has a body of ${bodyLength} bytes`);
      if (bodyLength > 0) yield (await input.take(bodyLength)) ?? truncated();
    }
    const tail = await input.drain(MAGIC.length);
    if (isFile ? !startsWithMagic(tail) : tail.length > 0) {
      if (isFile) truncated();
      throw badArrow("there are bytes after its end marker");
    }
  } finally {
    await input.close();
  }
}

/**
 * Whether the stream in a file begins with its schema. The JavaScript library leaves it out of files that it writes;
 * such a file can only be read by its footer, as a whole.
 */
async function hasSchema(input: ByteQueue, decoder: MessageDecoder): Promise<boolean> {
  const prefix = await input.peek(MAGIC_BYTES + 8);
  if (prefix.length < MAGIC_BYTES + 8) truncated();
  const marked = readInt32(prefix.subarray(MAGIC_BYTES)) === -1;
  const start = MAGIC_BYTES + (marked ? 8 : 4);
  const length = readInt32(prefix.subarray(start - 4));
  if (length === 0) return false;
  checkLength(length);
  const head = await input.peek(start + length);
  return head.length === start + length ? decoder.decode(head.subarray(start)).isSchema() : truncated();
}

/** The metadata of the next message; undefined at the end marker. */
async function takeMetadata(input: ByteQueue): Promise<Uint8Array | undefined> {
  let length = readInt32((await input.take(4)) ?? truncated());
  // A continuation marker of all ones comes first, but not before format version 0.15.
  if (length === -1) length = readInt32((await input.take(4)) ?? truncated());
  if (length === 0) return undefined;
  checkLength(length);
  return (await input.take(length)) ?? truncated();
}

function checkLength(length: number): void {
  if (length < 0 || length > MAX_METADATA_BYTES) throw badArrow("it has no Arrow message where one must begin");
}

/** Prefix and metadata, padded so that the body lies on eight bytes. */
function encapsulated(metadata: Uint8Array): Uint8Array {
  const length = (metadata.length + 7) & ~7;
  const out = new Uint8Array(8 + length);
  new DataView(out.buffer).setInt32(0, -1, true);
  new DataView(out.buffer).setInt32(4, length, true);
  out.set(metadata, 8);
  return out;
}

function readInt32(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getInt32(0, true);
}

function startsWithMagic(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => bytes[i] === byte);
}

function truncated(): never {
  throw new InvalidInputError(
    "truncated_arrow",
    "the Arrow data is cut off: it ends before its end marker; write it again and close the writer",
  );
}

export function badArrow(what: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    "bad_arrow",
    `this is not valid Arrow IPC: ${what}`,
    cause === undefined ? {} : { cause },
  );
}

/** Bytes of chunks of any size, by the piece. */
class ByteQueue {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunks: Uint8Array[] = [];
  #available = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next `size` bytes, or undefined if there are fewer. Not copied where one chunk holds them well aligned. */
  async take(size: number): Promise<Uint8Array | undefined> {
    if (!(await this.#fill(size))) return undefined;
    return this.#remove(size);
  }

  /** The next bytes, which stay; fewer at the end. */
  async peek(size: number): Promise<Uint8Array> {
    await this.#fill(size);
    const bytes = this.#remove(Math.min(size, this.#available));
    if (bytes.length > 0) this.#chunks.unshift(bytes);
    this.#available += bytes.length;
    return bytes;
  }

  /** Reads to the end and gives the last `size` bytes. */
  async drain(size: number): Promise<Uint8Array> {
    while (await this.#fill(this.#available + 1)) this.#remove(Math.max(0, this.#available - size));
    this.#remove(Math.max(0, this.#available - size));
    return this.#remove(this.#available);
  }

  /** All that is left. */
  async rest(): Promise<Uint8Array> {
    while (await this.#fill(this.#available + 1));
    return this.#remove(this.#available);
  }

  async close(): Promise<void> {
    this.#chunks = [];
    await this.#source.return?.();
  }

  async #fill(size: number): Promise<boolean> {
    while (this.#available < size) {
      const next = await this.#source.next();
      if (next.done) return false;
      if (next.value.length === 0) continue;
      this.#chunks.push(next.value);
      this.#available += next.value.length;
    }
    return true;
  }

  #remove(size: number): Uint8Array {
    this.#available -= size;
    const first = this.#chunks[0];
    if (size === 0 || first === undefined) return new Uint8Array(0);
    if (first.length >= size && first.byteOffset % 8 === 0) {
      this.#advance(size);
      return first.subarray(0, size);
    }
    const out = new Uint8Array(size);
    for (let at = 0; at < size; ) {
      const piece = this.#chunks[0]!.subarray(0, size - at);
      out.set(piece, at);
      this.#advance(piece.length);
      at += piece.length;
    }
    return out;
  }

  #advance(size: number): void {
    const first = this.#chunks[0]!;
    if (first.length === size) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(size);
  }
}
