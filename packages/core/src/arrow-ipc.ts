/** Arrow IPC bytes to record batches and back. */

import type * as Arrow from "apache-arrow";
import { batchFromArrow } from "./arrow.js";
import { arrowParts, type KeepFile } from "./arrow-frames.js";
import { ArrowLoader, type ZstdDecoder } from "./arrow-load.js";
import { type ArrowPart, badArrow } from "./arrow-messages.js";
import { schemaFromArrow } from "./arrow-schema.js";
import { loadArrow, toArrow, toArrowSchema } from "./arrow-write.js";
import type { RecordBatch } from "./columns.js";
import type { Schema } from "./schema.js";

/**
 * Reads the IPC stream or file format, plain or with buffers compressed by zstd or LZ4; chunks may be cut anywhere and
 * must not be reused. Memory is that of one record batch and the dictionaries. See `fromArrow` for types and values.
 *
 * A stream must end with its end marker: without one, a complete stream could not be told from one that was cut off.
 * @param keep keeps a file that has to be read by its footer; default: in memory
 * @throws InvalidInputError `truncated_arrow`, `bad_arrow`, `bad_lz4`, `bad_encoding`, `out_of_range`
 * @throws SchemaError `unsupported_type`
 */
export async function readArrowIPC(
  source: Uint8Array | AsyncIterable<Uint8Array>,
  keep?: KeepFile,
): Promise<{ schema: Schema; batches: AsyncIterable<RecordBatch> }> {
  const parts = arrowParts(source instanceof Uint8Array ? once(source) : source, keep);
  try {
    const first = await parts.next();
    // Framing gives the schema first, or throws.
    const { message } = first.value as ArrowPart;
    if (message.kind !== "schema") throw badArrow("it does not begin with a schema");
    const schema = schemaFromArrow(message.fields);
    const loader = new ArrowLoader(message.fields, await zstdDecoder());
    return { schema, batches: readBatches(parts, loader, schema) };
  } catch (error) {
    await parts.return(undefined);
    throw error;
  }
}

async function* readBatches(
  parts: AsyncGenerator<ArrowPart>,
  loader: ArrowLoader,
  schema: Schema,
): AsyncGenerator<RecordBatch> {
  for await (const part of parts) {
    const loaded = loader.load(part);
    if (loaded === undefined || loaded.numRows === 0) continue;
    yield batchFromArrow(loaded, schema);
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function zstdDecoder(): Promise<ZstdDecoder> {
  const { decompress } = await import("fzstd");
  return (bytes, size) => {
    try {
      return size === undefined ? decompress(bytes) : decompress(bytes, new Uint8Array(size));
    } catch (error) {
      throw badArrow("a buffer is not valid zstd", error);
    }
  };
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
