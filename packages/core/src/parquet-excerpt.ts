/**
 * Excerpts of Parquet files: the chunks of some columns at other places, under a footer that says so. Schema and
 * statistics stay those of the file. The other chunks are beyond the end of any file, so that reading them fails.
 */

import { ByteBuffer } from "./parquet-buffer.js";
import { chunkExtent, footerThrift } from "./parquet-footer.js";
import { MAGIC } from "./parquet-format.js";
import { malformed, readThrift, ThriftReader, type ThriftStruct, ThriftType, ThriftWriter } from "./parquet-thrift.js";

/** Key-value of a file's digests, see `ParquetOptions.chunkDigest`: of all chunks in their order, with spaces between. */
export const CHUNK_DIGESTS = "eider.chunks";

/** A column chunk as a footer tells of it. */
export interface StoredChunk {
  /** Of the column in the schema that it belongs to, be it nested; 0 where the file has no ids. */
  readonly fieldId: number;
  /** Of its first page, a dictionary or not, and of all its pages. */
  readonly offset: number;
  readonly bytes: number;
  /** Undefined where the file has none. */
  readonly digest: string | undefined;
}

/** No file has so many bytes. */
const BEYOND_ALL_FILES = 2 ** 50;

/**
 * The column chunks of a file, row group by row group.
 * @param footer the file's last bytes, see `parquetFooterBytes`
 * @throws InvalidInputError `bad_parquet`
 */
export function readStoredChunks(footer: Uint8Array): StoredChunk[] {
  const file = readThrift(footerThrift(footer));
  const fieldIds = leafFieldIds(file.structs(2) ?? []);
  const groups = (file.structs(4) ?? []).map((group) => group.structs(1) ?? []);
  const keyValue = file.structs(5)?.find((pair) => pair.string(1) === CHUNK_DIGESTS);
  const digests = keyValue?.string(2)?.split(" ") ?? [];
  const told = digests.length === groups.length * fieldIds.length;
  return groups.flatMap((chunks, group) => {
    if (chunks.length !== fieldIds.length) throw malformed("a row group has not a chunk for each column");
    return chunks.map((chunk, leaf) => {
      const { start, end } = chunkExtent(chunk.struct(3));
      const digest = told ? digests[group * fieldIds.length + leaf] : undefined;
      return { fieldId: fieldIds[leaf]!, offset: start, bytes: end - start, digest };
    });
  });
}

/**
 * The footer of an excerpt, with its length and magic.
 * @param offsets where each chunk is in the excerpt, in the order of {@link readStoredChunks}; undefined if it is not there
 * @throws InvalidInputError `bad_parquet`
 */
export function excerptFooter(footer: Uint8Array, offsets: readonly (number | undefined)[]): Uint8Array {
  const out = new ThriftWriter(new ByteBuffer(footer.length));
  let next = 0;
  const chunk = (from: number): Edits => {
    const to = offsets[next++] ?? BEYOND_ALL_FILES;
    const moved = (offset: number): number => offset - from + to;
    // Offsets of page indexes and Bloom filters, which the excerpt has not.
    const metadata: Edits = { 9: { integer: moved }, 10: "drop", 11: { integer: moved }, 14: "drop", 15: "drop" };
    return { 2: { integer: () => 0 }, 3: { struct: metadata }, 4: "drop", 5: "drop", 6: "drop", 7: "drop" };
  };
  const starts = readStoredChunks(footer).map(({ offset }) => offset);
  const group: Edits = { 1: { each: () => chunk(starts[next]!) }, 5: "drop" };
  out.begin();
  copyStruct(new ThriftReader(footerThrift(footer)), out, { 4: { each: () => group } }, 0);
  out.out.uint32(out.out.length);
  out.out.append(MAGIC);
  return out.out.view();
}

/** For each leaf column the field id of the column of the schema that it is, or is in. */
function leafFieldIds(elements: readonly ThriftStruct[]): number[] {
  const ids: number[] = [];
  let at = 1;
  /** Passes one element and what is below it. */
  const pass = (fieldId: number): void => {
    const element = elements[at++];
    if (element === undefined) throw malformed("the schema is incomplete");
    const children = element.int(5) ?? 0;
    if (children === 0) ids.push(fieldId);
    for (let child = 0; child < children; child++) pass(fieldId);
  };
  while (at < elements.length) pass(elements[at]!.int(9) ?? 0);
  return ids;
}

/** What becomes of a struct's fields, by id; those not named stay as they are. */
interface Edits {
  readonly [field: number]:
    | "drop"
    | { readonly integer: (value: number) => number }
    | { readonly struct: Edits }
    | { readonly each: (index: number) => Edits };
}

/** Copies what is not changed byte by byte: types that this code does not know stay what they are. */
function copyStruct(from: ThriftReader, to: ThriftWriter, edits: Edits, depth: number): void {
  for (let field = from.field(0); field !== undefined; field = from.field(field.id)) {
    const { id, type } = field;
    const edit = edits[id];
    if (edit === undefined) to.encoded(id, type, from.encoded(type, depth));
    else if (edit === "drop") from.value(type, depth);
    else if ("integer" in edit) {
      const value = from.value(type, depth);
      if (type !== ThriftType.i64 || typeof value !== "number") throw malformed(`field ${id} should be an i64`);
      to.i64(id, edit.integer(value));
    } else if ("struct" in edit) {
      if (type !== ThriftType.struct) throw malformed(`field ${id} should be a struct`);
      to.struct(id);
      copyStruct(from, to, edit.struct, depth + 1);
    } else {
      if (type !== ThriftType.list) throw malformed(`field ${id} should be a list`);
      const { type: element, size } = from.list();
      if (element !== ThriftType.struct) throw malformed(`field ${id} should be a list of structs`);
      to.list(id, element, size);
      for (let i = 0; i < size; i++) {
        to.begin();
        copyStruct(from, to, edit.each(i), depth + 1);
      }
    }
  }
  to.end();
}
