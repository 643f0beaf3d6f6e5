/** Arrow IPC in parts: streams of whole record batches, each with the schema and the dictionaries that it needs. */

import { arrowParts, type KeepFile } from "./arrow-frames.js";
import type { ArrowPart } from "./arrow-messages.js";
import type { ArrowType } from "./arrow-shape.js";

/** A message has its length before it, behind a marker; a stream ends with a length of 0. */
const MARKER = 0xffffffff;
const END = prefix(0);

/** One part after the other, each read to its end before the next. */
export interface ArrowStreams extends AsyncDisposable {
  /** Whether a record batch is left, with which another part begins. */
  more(): Promise<boolean>;
  /** The next part, as an IPC stream. */
  read(): AsyncIterable<Uint8Array>;
  /** Rows in the parts so far. */
  readonly rows: number;
}

/**
 * Cuts the IPC stream or file format. A part ends with the record batch that brings its batches to `partBytes`, as they are
 * stored; dictionaries that it shares with others do not count. Memory is that of one batch and the dictionaries.
 * @param keep keeps a file that has to be read by its footer; default: in memory
 * @throws InvalidInputError `truncated_arrow`, `bad_arrow`
 */
export async function cutArrowIPC(
  source: AsyncIterable<Uint8Array>,
  partBytes: number,
  keep?: KeepFile,
): Promise<ArrowStreams> {
  const parts = arrowParts(source, keep);
  // Framing gives the schema first, or throws.
  const schema = (await parts.next()).value as ArrowPart;
  return new Streams(parts, schema, partBytes);
}

class Streams implements ArrowStreams {
  readonly #parts: AsyncGenerator<ArrowPart>;
  readonly #schema: ArrowPart;
  readonly #partBytes: number;
  readonly #dictionaries: Dictionaries;
  /** The record batch that comes next. */
  #next: ArrowPart | undefined;
  rows = 0;

  constructor(parts: AsyncGenerator<ArrowPart>, schema: ArrowPart, partBytes: number) {
    this.#parts = parts;
    this.#schema = schema;
    this.#partBytes = partBytes;
    this.#dictionaries = new Dictionaries(schema);
  }

  async more(): Promise<boolean> {
    while (!this.#next) {
      const { value, done } = await this.#parts.next();
      if (done) return false;
      if (value.message.kind === "dictionary") this.#dictionaries.add(value);
      else this.#next = value;
    }
    return true;
  }

  async *read(): AsyncIterable<Uint8Array> {
    yield* framed(this.#schema);
    let bytes = 0;
    let sent = 0;
    while (bytes < this.#partBytes && (await this.more())) {
      const batch = this.#next!;
      this.#next = undefined;
      if (sent !== this.#dictionaries.added) for (const part of this.#dictionaries.live(sent)) yield* framed(part);
      sent = this.#dictionaries.added;
      if (batch.message.kind === "batch") this.rows += batch.message.batch.rows;
      bytes += batch.metadata.length + batch.body.length;
      yield* framed(batch);
    }
    yield END;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.return(undefined);
  }
}

/** The dictionary messages that batches from here on are read by, in the order in which they came. */
class Dictionaries {
  #live: { readonly part: ArrowPart; readonly id: number; readonly place: number }[] = [];
  /** A dictionary whose values are in another one keeps those that it was read by. */
  readonly #nested: boolean;
  /** How many have come. */
  added = 0;

  constructor({ message }: ArrowPart) {
    this.#nested = message.kind === "schema" && message.fields.some(({ type }) => isNested(type));
  }

  add(part: ArrowPart): void {
    const { message } = part;
    if (message.kind !== "dictionary") return;
    const { id, isDelta } = message;
    if (!isDelta && !this.#nested) this.#live = this.#live.filter((other) => other.id !== id);
    this.#live.push({ part, id, place: this.added++ });
  }

  /** Those behind the first `sent` that came. */
  live(sent: number): ArrowPart[] {
    return this.#live.filter(({ place }) => place >= sent).map(({ part }) => part);
  }
}

function isNested({ dictionary, children = [] }: ArrowType): boolean {
  return (dictionary !== undefined && hasDictionary(dictionary)) || children.some(({ type }) => isNested(type));
}

function hasDictionary({ dictionary, children = [] }: ArrowType): boolean {
  return dictionary !== undefined || children.some(({ type }) => hasDictionary(type));
}

function* framed({ metadata, body }: ArrowPart): Iterable<Uint8Array> {
  yield prefix(metadata.length);
  yield metadata;
  if (body.length > 0) yield body;
}

function prefix(length: number): Uint8Array {
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MARKER, true);
  view.setUint32(4, length, true);
  return bytes;
}
