/** Arrow IPC bytes to record batches and back. Loads the Arrow library on first use. */

import type * as Arrow from "apache-arrow";
import { batchFromArrow } from "./arrow.js";
import { arrowMessages, badArrow } from "./arrow-frames.js";
import { schemaFromArrow } from "./arrow-schema.js";
import type { ArrowBatch, ArrowField } from "./arrow-shape.js";
import { loadArrow, toArrow, toArrowSchema } from "./arrow-write.js";
import type { RecordBatch } from "./columns.js";
import { EiderError } from "./errors.js";
import type { Schema } from "./schema.js";

/**
 * Reads the IPC stream or file format, plain or with zstd-compressed buffers; chunks may be cut anywhere and must not
 * be reused. Memory is that of one record batch and the dictionaries. See `fromArrow` for types and values.
 *
 * A stream must end with its end marker: without one, a complete stream could not be told from one that was cut off.
 * @throws InvalidInputError `truncated_arrow`, `bad_arrow`, `bad_encoding`, `out_of_range`
 * @throws SchemaError `unsupported_type`
 */
export async function readArrowIPC(
  source: Uint8Array | AsyncIterable<Uint8Array>,
): Promise<{ schema: Schema; batches: AsyncIterable<RecordBatch> }> {
  const arrow = await loadArrow();
  await registerCodecs(arrow);
  const failure = new SourceFailure();
  const messages = arrowMessages(failure.watch(source instanceof Uint8Array ? once(source) : source), arrow.Message);
  try {
    const reader = await failure.translate(async () => (await arrow.RecordBatchReader.from(messages)).open());
    const schema = await failure.translate(async () =>
      schemaFromArrow(reader.schema.fields as unknown as ArrowField[]),
    );
    return { schema, batches: readBatches(reader, messages, schema, failure) };
  } catch (error) {
    await messages.return(undefined);
    throw error;
  }
}

async function* readBatches(
  reader: Arrow.RecordBatchReader,
  messages: AsyncGenerator<Uint8Array>,
  schema: Schema,
  failure: SourceFailure,
): AsyncGenerator<RecordBatch> {
  try {
    for (;;) {
      const batch = await failure.translate(async () => {
        const next = await reader.next();
        return next.done ? undefined : batchFromArrow(next.value as unknown as ArrowBatch, schema);
      });
      if (batch === undefined) break;
      if (batch.length > 0) yield batch;
    }
    // The library stops at what it takes for the end; only the framing knows whether it is.
    await failure.translate(async () => messages.next());
  } finally {
    await messages.return(undefined);
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Tells errors of the source, which pass unchanged, from those of the Arrow library, which mean damaged bytes. */
class SourceFailure {
  #error: { readonly error: unknown } | undefined;

  async *watch(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* source;
    } catch (error) {
      this.#error = { error };
      throw error;
    }
  }

  async translate<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (this.#error) throw this.#error.error;
      if (error instanceof EiderError) throw error;
      throw badArrow(error instanceof Error ? error.message : String(error), error);
    }
  }
}

/** The library has no decompression of its own; it asks a registry of codecs. */
async function registerCodecs(arrow: typeof Arrow): Promise<void> {
  const { compressionRegistry, CompressionType } = arrow;
  if (compressionRegistry.get(CompressionType.ZSTD) === null) {
    const { decompress } = await import("fzstd");
    compressionRegistry.set(CompressionType.ZSTD, { decode: (bytes) => decompress(bytes) });
  }
}

/** Writes the IPC stream format, a piece per record batch, from the schema message to the end marker. */
export async function* toArrowIPC(
  schema: Schema,
  batches: AsyncIterable<RecordBatch> | Iterable<RecordBatch>,
): AsyncGenerator<Uint8Array> {
  const arrow = await loadArrow();
  /** Takes the pieces where the library would queue them. */
  class Pieces extends arrow.RecordBatchStreamWriter {
    #pieces: Uint8Array[] = [];

    protected override _write(chunk: Parameters<Arrow.RecordBatchStreamWriter["_write"]>[0]): this {
      const view = chunk as ArrayBufferView;
      this.#pieces.push(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
      return this;
    }

    take(): Uint8Array {
      const out = new Uint8Array(this.#pieces.reduce((sum, piece) => sum + piece.length, 0));
      let at = 0;
      for (const piece of this.#pieces) {
        out.set(piece, at);
        at += piece.length;
      }
      this.#pieces = [];
      return out;
    }
  }
  const writer = new Pieces();
  const arrowSchema = await toArrowSchema(schema);
  writer.reset(undefined, arrowSchema);
  yield writer.take();
  for await (const batch of batches) {
    const { data } = await toArrow(batch);
    writer.write(new arrow.RecordBatch(arrowSchema, data));
    yield writer.take();
  }
  writer.finish();
  yield writer.take();
}
