/**
 * The framing of Arrow IPC (columnar format, "Encapsulated message format"): cuts bytes into messages, and proves that
 * the data is whole.
 */

import { type ArrowPart, badArrow, type FileBlock, readFileFooter, readMessage } from "./arrow-messages.js";
import { ByteQueue } from "./byte-queue.js";
import { InvalidInputError } from "./errors.js";

/** A file that can be read anywhere. */
export interface ByteFile {
  readonly bytes: number;
  /** `length` bytes, which are there. */
  read(at: number, length: number): Promise<Uint8Array>;
}

/** Keeps the bytes of a file that cannot be read from its front to its end. Pieces are valid until the next one. */
export type KeepFile = (pieces: AsyncIterable<Uint8Array>) => Promise<ByteFile>;

/** First and last bytes of the file format. */
const MAGIC = [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31];
/** At the beginning, with its padding. */
const MAGIC_BYTES = 8;

/** Metadata is kilobytes; a larger length means that this is not Arrow. */
const MAX_METADATA_BYTES = 64 * 1024 * 1024;

/**
 * The messages of a stream or file: the schema first, then dictionaries and batches, and at the end the proof that
 * there are no more. A file is read front to back, as the stream that it contains, so that its size does not matter;
 * only one without that stream's schema, as the JavaScript library and polars write them, is kept whole and read by its
 * footer.
 * @param keep default: in memory
 * @throws InvalidInputError `truncated_arrow`, `bad_arrow`
 */
export async function* arrowParts(source: AsyncIterable<Uint8Array>, keep?: KeepFile): AsyncGenerator<ArrowPart> {
  const input = new ByteQueue(source);
  try {
    const beginning = await input.peek(MAGIC.length);
    if (beginning.length < MAGIC.length) truncated();
    const isFile = startsWithMagic(beginning);
    if (isFile && !(await hasSchema(input))) {
      yield* fileParts(keep ? await keep(input.pieces()) : inMemory(await input.rest()));
      return;
    }
    if (isFile) await input.take(MAGIC_BYTES);
    const first = await takePart(input);
    if (first?.message.kind !== "schema") throw badArrow("it does not begin with a schema");
    for (let part: ArrowPart | undefined = first; part !== undefined; part = await takePart(input)) yield part;
    const tail = await input.drain(MAGIC.length);
    if (isFile && !startsWithMagic(tail)) truncated();
    if (!isFile && tail.length > 0) throw badArrow("there are bytes after its end marker");
  } finally {
    await input.close();
  }
}

/** Whether the stream in a file begins with its schema; nothing is taken. */
async function hasSchema(input: ByteQueue): Promise<boolean> {
  const prefix = await input.peek(MAGIC_BYTES + 8);
  if (prefix.length < MAGIC_BYTES + 8) truncated();
  // Neither format versions before 0.15 nor the empty room that polars leaves here have the marker: the footer tells.
  if (readInt32(prefix, MAGIC_BYTES) !== -1) return false;
  const start = MAGIC_BYTES + 8;
  const length = checkedLength(readInt32(prefix, start - 4));
  if (length === 0) return false;
  const head = await input.peek(start + length);
  if (head.length < start + length) truncated();
  return readMessage(head.subarray(start)).message.kind === "schema";
}

/** The next message; undefined at the end marker. */
async function takePart(input: ByteQueue): Promise<ArrowPart | undefined> {
  let length = readInt32((await input.take(4)) ?? truncated(), 0);
  // A continuation marker of all ones comes first, but not before format version 0.15.
  if (length === -1) length = readInt32((await input.take(4)) ?? truncated(), 0);
  if (checkedLength(length) === 0) return undefined;
  const metadata = (await input.take(length)) ?? truncated();
  const { message, bodyBytes } = readMessage(metadata);
  return { message, metadata, body: (await input.take(bodyBytes)) ?? truncated() };
}

async function* fileParts(file: ByteFile): AsyncGenerator<ArrowPart> {
  const tailAt = file.bytes - MAGIC.length - 4;
  if (tailAt < MAGIC_BYTES) truncated();
  const tail = await file.read(tailAt, MAGIC.length + 4);
  if (!startsWithMagic(tail.subarray(4))) truncated();
  const length = readInt32(tail, 0);
  if (length <= 0 || length > tailAt - MAGIC_BYTES) throw badArrow("its footer lies outside of it");
  const { schema, dictionaries, batches } = readFileFooter(await file.read(tailAt - length, length));
  yield schema;
  for (const block of [...dictionaries, ...batches]) yield await blockPart(file, block);
}

async function blockPart(file: ByteFile, { offset, metadataBytes, bodyBytes }: FileBlock): Promise<ArrowPart> {
  const bodyAt = offset + metadataBytes;
  if (!(offset >= 0 && metadataBytes >= 8 && bodyBytes >= 0 && bodyAt + bodyBytes <= file.bytes)) {
    throw badArrow("its footer points outside of it");
  }
  const framed = await file.read(offset, metadataBytes);
  const metadata = framed.slice(readInt32(framed, 0) === -1 ? 8 : 4);
  return { message: readMessage(metadata).message, metadata, body: await file.read(bodyAt, bodyBytes) };
}

function inMemory(file: Uint8Array): ByteFile {
  return { bytes: file.length, read: async (at, length) => file.subarray(at, at + length) };
}

function checkedLength(length: number): number {
  if (length < 0 || length > MAX_METADATA_BYTES) throw badArrow("it has no Arrow message where one must begin");
  return length;
}

function readInt32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getInt32(at, true);
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
