/** The bodies of Arrow IPC messages as columns of the library's shape, which `arrow.ts` reads. */

import { type ArrowPart, type BatchHeader, badArrow } from "./arrow-messages.js";
import {
  type ArrowBatch,
  type ArrowData,
  type ArrowDictionary,
  type ArrowField,
  type ArrowType,
  ArrowTypeId,
} from "./arrow-shape.js";
import { decompressLz4Frame } from "./lz4.js";

/** Decompresses a zstd frame, of the given size or of the one that it states itself. */
export type ZstdDecoder = (bytes: Uint8Array, size: number | undefined) => Uint8Array;

/** A zstd block of a few bytes may repeat one byte 128 KiB long. */
const MAX_RATIO = 128 * 1024;

/** Turns messages into batches, and keeps the dictionaries that they use. */
export class ArrowLoader {
  readonly #fields: readonly ArrowField[];
  readonly #zstd: ZstdDecoder;
  readonly #dictionaryTypes = new Map<number, ArrowType>();
  readonly #dictionaries = new Map<number, ArrowDictionary>();

  constructor(fields: readonly ArrowField[], zstd: ZstdDecoder) {
    this.#fields = fields;
    this.#zstd = zstd;
    this.#collectDictionaries(fields.map((field) => field.type));
  }

  /** The batch of a message; undefined for a dictionary, which is kept for the batches that follow. */
  load({ message, body }: ArrowPart): ArrowBatch | undefined {
    switch (message.kind) {
      case "schema":
        throw badArrow("it has a second schema");
      case "dictionary": {
        const { id, isDelta } = message;
        const type = this.#dictionaryTypes.get(id);
        const known = this.#dictionaries.get(id);
        if (type === undefined) throw badArrow(`it has a dictionary ${id}, which no field uses`);
        if (isDelta && known === undefined) throw badArrow(`it adds to dictionary ${id}, which it never sent`);
        const [values] = this.#columns(message.batch, body, [type]);
        // A new object either way: batches that came before keep theirs.
        this.#dictionaries.set(id, { data: isDelta ? [...known!.data, values!] : [values!] });
        return undefined;
      }
      case "batch": {
        const types = this.#fields.map((field) => field.type);
        const children = this.#columns(message.batch, body, types);
        return { numRows: message.batch.rows, data: { children } };
      }
    }
  }

  #collectDictionaries(types: readonly ArrowType[]): void {
    for (const type of types) {
      if (type.dictionary !== undefined) {
        this.#dictionaryTypes.set(type.dictionaryId!, type.dictionary);
        this.#collectDictionaries([type.dictionary]);
      } else {
        this.#collectDictionaries(type.children?.map((field) => field.type) ?? []);
      }
    }
  }

  #columns(header: BatchHeader, body: Uint8Array, types: readonly ArrowType[]): ArrowData[] {
    if (!(header.rows >= 0 && header.rows <= 0x7fffffff)) throw badArrow(`a batch has ${header.rows} rows`);
    const walk = new BodyWalk(header, body, this.#zstd, this.#dictionaries);
    return types.map((type) => walk.column(type));
  }
}

/** Hands out nodes and buffers in the order of the format: depth first, each column's own buffers before its children. */
class BodyWalk {
  readonly #header: BatchHeader;
  readonly #body: Uint8Array;
  readonly #zstd: ZstdDecoder;
  readonly #dictionaries: ReadonlyMap<number, ArrowDictionary>;
  #node = 0;
  #buffer = 0;
  #views = 0;

  constructor(
    header: BatchHeader,
    body: Uint8Array,
    zstd: ZstdDecoder,
    dictionaries: ReadonlyMap<number, ArrowDictionary>,
  ) {
    this.#header = header;
    this.#body = body;
    this.#zstd = zstd;
    this.#dictionaries = dictionaries;
  }

  column(type: ArrowType): ArrowData {
    const node = this.#header.nodes[this.#node++];
    if (node === undefined) throw badArrow("a batch describes fewer columns than its schema has");
    const [length, nullCount] = node as [number, number];
    if (!(length >= 0 && length <= 0x7fffffff)) throw badArrow(`a column has ${length} values`);
    const base = { type, length, offset: 0, nullCount, children: [] };
    if (type.typeId === ArrowTypeId.null) return base;
    const nullBitmap = this.#next();
    switch (type.typeId) {
      case ArrowTypeId.dictionary: {
        const dictionary = this.#dictionaries.get(type.dictionaryId!);
        return { ...base, nullBitmap, values: this.#next(), ...(dictionary && { dictionary }) };
      }
      case ArrowTypeId.utf8:
      case ArrowTypeId.binary:
      case ArrowTypeId.largeUtf8:
      case ArrowTypeId.largeBinary:
        return { ...base, nullBitmap, valueOffsets: this.#next(), values: this.#next() };
      case ArrowTypeId.utf8View:
      case ArrowTypeId.binaryView: {
        const values = this.#next();
        const [count = 0] = this.#header.viewBuffers[this.#views++] ?? [];
        if (!(count >= 0 && count <= this.#header.buffers.length))
          throw badArrow("a view column counts its buffers wrong");
        return { ...base, nullBitmap, values, variadicBuffers: Array.from({ length: count }, () => this.#next()) };
      }
      case ArrowTypeId.list:
      case ArrowTypeId.largeList:
      case ArrowTypeId.map:
        return { ...base, nullBitmap, valueOffsets: this.#next(), children: this.#children(type) };
      case ArrowTypeId.fixedSizeList:
      case ArrowTypeId.struct:
        return { ...base, nullBitmap, children: this.#children(type) };
      default:
        return { ...base, nullBitmap, values: this.#next() };
    }
  }

  #children(type: ArrowType): ArrowData[] {
    return type.children?.map((field) => this.column(field.type)) ?? [];
  }

  #next(): Uint8Array {
    const region = this.#header.buffers[this.#buffer++];
    if (region === undefined) throw badArrow("a batch has fewer buffers than its columns need");
    const [offset, length] = region as [number, number];
    if (!(offset >= 0 && length >= 0 && offset + length <= this.#body.length)) {
      throw badArrow("a buffer lies outside of its message");
    }
    const bytes = this.#body.subarray(offset, offset + length);
    return this.#header.compression === undefined || length === 0 ? bytes : this.#decompress(bytes);
  }

  /** Eight bytes of uncompressed size come first; −1 means that the buffer is not compressed. */
  #decompress(bytes: Uint8Array): Uint8Array {
    if (bytes.length < 8) throw badArrow("a compressed buffer has no size");
    const size = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(0, true));
    const data = bytes.subarray(8);
    if (size === -1) return data;
    if (!(size >= 0 && size <= Math.min(0x7fffffff, data.length * MAX_RATIO))) {
      throw badArrow(`a compressed buffer of ${data.length} bytes claims to hold ${size}`);
    }
    // The JavaScript library (21.2) writes the compressed size where the uncompressed one belongs.
    if (this.#header.compression === "zstd" && size === data.length) return this.#zstd(data, undefined);
    const out = this.#header.compression === "zstd" ? this.#zstd(data, size) : decompressLz4Frame(data, size);
    if (out.length !== size) throw badArrow(`a buffer has ${out.length} bytes where it says ${size}`);
    return out;
  }
}
