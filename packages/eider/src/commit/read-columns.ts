/** Input that comes in columns with a schema of its own: Arrow and Parquet. */

import {
  type ArrowLike,
  alignBatch,
  assignFieldIds,
  batchRows,
  type Column,
  type Field,
  fromArrow,
  InvalidInputError,
  mergeSchema,
  nameKey,
  type RecordBatch,
  type Reject,
  readArrowIPC,
  type Schema,
  toSchema,
} from "@eider/core";
import { createContentHash } from "@eider/core/node";
import { readHead } from "../source/decompress.js";
import { KeptFile } from "../source/kept-file.js";
import { spoolToFile } from "../source/spool.js";
import {
  type BatchesInput,
  type BatchSink,
  type BytesInput,
  bytesOf,
  failRows,
  hashRows,
  NAMED_REJECTS,
  newCounters,
  type PaceOptions,
  paced,
  type ReadOptions,
  type ReadResult,
  type RowGroupsInput,
} from "./pass.js";

/** A table or record batch of any copy of `apache-arrow`. */
export function readArrowObject(source: ArrowLike, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  return readColumns(arrowObject(source), options, sink);
}

/** Batches of one schema, as they come. */
export function readBatches(input: BatchesInput, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  return readColumns(
    { ...hashedBatches(input.schema, input.batches.open()), rowsBefore: input.rowsBefore },
    options,
    sink,
  );
}

/** Arrow IPC, stream or file. */
export async function readArrowBytes(input: BytesInput, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  await using kept = new KeptFile(options.tempFolder);
  return await readColumns(await arrowBytes(input, options, kept), options, sink);
}

/** Input that comes in columns with a schema of its own. */
interface ColumnInput {
  readonly schema: Schema;
  batches(): AsyncIterable<RecordBatch> | Iterable<RecordBatch>;
  /** Told after the last batch. */
  contentHash(): string;
  /** Rows of a longer source that come before these. Default 0. */
  readonly rowsBefore?: number | undefined;
}

async function readColumns(input: ColumnInput, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  const base = options.schema;
  const mode = options.append.schemaMode ?? "evolve";
  const merged = mergeSchema(base, toSchema(input.schema), {
    mode: base ? mode : "evolve",
    ...(base && { integerBounds: await options.integerBounds() }),
  });
  const schema = assignFieldIds(merged, options.lastFieldId);
  await sink.restart(schema);
  const rejects: Reject[] = [];
  const counters = newCounters();
  const fail = (options.append.onReject ?? "fail") === "fail";
  const maxRejects = options.append.maxRejects ?? 10_000;
  const ignoredFields = new Map<string, number>();
  let read = input.rowsBefore ?? 0;
  for await (const batch of paced(input.batches(), options)) {
    const aligned = alignBatch(batch, schema);
    for (const problem of aligned.rejects) rejects.push({ ...problem, line: read + problem.line, raw: "" });
    if (fail && rejects.length >= NAMED_REJECTS) failRows(rejects, true, "row");
    if (rejects.length > maxRejects) {
      throw new InvalidInputError("too_many_rejects", `more than ${maxRejects} rows cannot be taken`);
    }
    countIgnored(batch.schema.fields, batch.columns, schema.fields, "", ignoredFields);
    read += batch.length;
    await sink.add(aligned.batch);
    counters.rows += aligned.batch.length;
    counters.rejected = rejects.length;
    options.onCounters(counters);
  }
  if (fail && rejects.length > 0) failRows(rejects, false, "row");
  return { schema, contentHash: input.contentHash(), rows: counters.rows, rejects, ignoredFields };
}

/** Counts the values of columns, and of fields of structs, that the table lacks. */
function countIgnored(
  fields: readonly Field[],
  columns: readonly Column[],
  known: readonly Field[],
  path: string,
  counts: Map<string, number>,
): void {
  const places = new Map(known.map((field) => [nameKey(field.name), field]));
  for (const [i, { name, type }] of fields.entries()) {
    const column = columns[i]!;
    const place = path + name;
    const target = places.get(nameKey(name));
    if (!target) counts.set(place, (counts.get(place) ?? 0) + column.length - column.nullCount);
    else if (type.kind === "struct" && target.type.kind === "struct") {
      countIgnored(type.fields, column.children, target.type.fields, `${place}.`, counts);
    }
  }
}

function arrowObject(source: ArrowLike): ColumnInput {
  const { schema, batches } = fromArrow(source);
  return hashedBatches(schema, batches);
}

function hashedBatches(schema: Schema, batches: AsyncIterable<RecordBatch> | Iterable<RecordBatch>): ColumnInput {
  const hash = createContentHash("rows");
  return {
    schema,
    async *batches() {
      for await (const batch of batches) {
        hashRows(hash, batchRows(batch, "exact"));
        yield batch;
      }
    },
    contentHash: () => hash.digest(),
  };
}

async function arrowBytes(input: BytesInput, options: ReadOptions, { keep }: KeptFile): Promise<ColumnInput> {
  const hash = createContentHash("bytes");
  const hashed = async function* (): AsyncIterable<Uint8Array> {
    for await (const chunk of bytesOf(input, options, newCounters())) {
      hash.update(chunk);
      // Batches are made of the bytes themselves.
      yield new Uint8Array(chunk);
    }
  };
  const { schema, batches } = await readArrowIPC(hashed(), keep);
  return { schema, batches: () => batches, contentHash: () => hash.digest(), rowsBefore: input.rowsBefore };
}

/** DuckDB decodes foreign Parquet from a file, so input that is not a plain file already is written to one. */
export async function readParquet(input: BytesInput, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  const hash = createContentHash("bytes");
  const counters = newCounters();
  const plain = async function* (): AsyncIterable<Uint8Array> {
    for await (const chunk of bytesOf(input, options, counters)) {
      hash.update(chunk);
      options.onCounters(counters);
      yield chunk;
    }
  };
  await using file =
    (await isPlainFile(input)) && input.path !== undefined
      ? await readThrough(plain(), input.path)
      : await spoolToFile(plain(), options.tempFolder);
  const imported = await options.openParquet(file.path, input.name ?? "the input");
  const contentHash = hash.digest();
  const { signal } = options.append;
  const source: ColumnInput = {
    schema: imported.schema,
    batches: () => imported.batches(signal ? { signal } : {}),
    contentHash: () => contentHash,
  };
  // Awaited here: the temporary file goes when this function returns.
  return await readColumns(source, options, sink);
}

/** Row groups of a Parquet file, as a part of it. */
export async function readRowGroups(input: RowGroupsInput, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  const contentHash = await hashRowGroups(input, options);
  const { schema, batches } = await options.openParquet(input.path, input.name);
  const { rows } = input;
  const { signal } = options.append;
  const source: ColumnInput = {
    schema,
    batches: () => batches({ rows, ...(signal && { signal }) }),
    contentHash: () => contentHash,
    rowsBefore: rows.from,
  };
  return readColumns(source, options, sink);
}

/** The hash of row groups: of the file's footer, which says what they are, and of their bytes. */
export async function hashRowGroups(input: RowGroupsInput, options: PaceOptions): Promise<string> {
  const hash = createContentHash("bytes");
  for await (const piece of paced(input.bytes.open(), options)) hash.update(piece);
  return hash.digest();
}

/** Whether an input is a file that DuckDB can read where it is. */
export async function isPlainFile(input: BytesInput): Promise<boolean> {
  if (input.path === undefined) return false;
  return Buffer.from(await readHead(input.bytes.open(), 4)).toString("latin1") === "PAR1";
}

/** Reads a stream only for what happens on the way (its hash, its progress). */
async function readThrough(
  source: AsyncIterable<Uint8Array>,
  path: string,
): Promise<AsyncDisposable & { readonly path: string }> {
  for await (const _ of source);
  return { path, [Symbol.asyncDispose]: async () => {} };
}
