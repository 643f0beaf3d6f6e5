/**
 * Hot batches as DuckDB sees them: Parquet files of this process, in its temporary folder. So they are read as data files
 * are, by field id, through every change of schema, and one kind of scan serves both.
 *
 * Each batch is taken from the catalog and encoded when the first query needs it, and again when small files are joined
 * into larger ones, eight at a time: of n batches each is encoded log₈ n times, and at most seven files of each size stay.
 */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Catalog, type HotBatch, hotPages, type TableInfo } from "@eider/catalog";
import {
  concatBatches,
  decodeRecordBatch,
  ParquetEncoder,
  parquetReady,
  type RecordBatch,
  type Schema,
  storedSchema,
} from "@eider/core";
import { Turns } from "./turns.js";

/** Batches taken from the catalog at once: at 64 KiB, 32 MiB. */
const PAGE = 512;
/** Rows that are encoded at once. */
const GROUP_ROWS = 100_000;
/** Files of one size that are joined. */
const FAN = 8;
/** Tables, or states of a table between two folds, whose files are kept. */
const KEPT_SERIES = 16;

/** Rows of one schema version. */
export interface HotFile {
  /** Absolute. */
  readonly path: string;
  readonly rows: number;
  readonly schemaVersion: number;
  /** Of its first batch. */
  readonly addedIn: number;
}

/** Files that stay until they are released. */
export interface HeldHotFiles {
  readonly files: readonly HotFile[];
  release(): Promise<void>;
}

/** A batch by the snapshot that it came with. */
export interface BatchPlace {
  readonly snapshot: number;
  readonly batchId: string;
}

/** A file of whole batches, one behind the other. */
export interface BatchesFile extends HotFile {
  readonly batches: readonly (BatchPlace & { readonly rows: number })[];
}

export interface HeldBatches extends HeldHotFiles {
  readonly files: readonly BatchesFile[];
}

const NO_FILES: HeldBatches = { files: [], release: async () => undefined };

/** The batches of some snapshots: those after `from`, up to `to`. */
interface Piece {
  readonly from: number;
  readonly to: number;
  readonly batches: number;
  readonly files: readonly HotFile[];
  users: number;
  /** Whether later queries may use it. */
  kept: boolean;
}

/** What has been encoded of a table since its hot batches last did more than grow: pieces without gaps, in their order. */
interface Series {
  readonly pieces: Piece[];
  /** Ends when the last query that looked at the series has its files. */
  queue: Promise<unknown>;
}

export class HotFiles {
  readonly #catalog: Catalog;
  readonly #folder: string;
  readonly #series = new Map<string, Series>();
  #files = 0;

  /** @param folder is made when it is needed */
  constructor(catalog: Catalog, folder: string) {
    this.#catalog = catalog;
    this.#folder = folder;
  }

  /** The hot batches of a table at a snapshot, of which `table` is a description. */
  async hold(table: TableInfo, at: number, signal?: AbortSignal): Promise<HeldHotFiles> {
    if (table.hotBatches === 0) return NO_FILES;
    const series = await this.#seriesOf(table);
    const pieces = await next(series, () => this.#cover(series, table, at, signal));
    let held = true;
    return {
      files: pieces.flatMap(({ files }) => files),
      release: async () => {
        if (held) for (const piece of pieces) await this.#letGo(piece);
        held = false;
      },
    };
  }

  /**
   * Batches of a table as they came, each that was hot at its snapshot: in a file for each schema version.
   * @param places in the order of their snapshots
   */
  async holdBatches({ id }: TableInfo, places: readonly BatchPlace[], signal?: AbortSignal): Promise<HeldBatches> {
    const newest = places.at(-1)?.snapshot;
    if (newest === undefined) return NO_FILES;
    const missing = new Map(places.map((place) => [placeKey(place.snapshot, place.batchId), place]));
    const writers = new Map<number, HotWriter>();
    const add = (batch: HotBatch): void => {
      if (!missing.delete(placeKey(batch.addedIn, batch.batchId))) return;
      writerFor(writers, batch).add(batch);
    };
    await parquetReady();
    // Most are hot still at the last of the snapshots; the others were at their own.
    for (const at of new Set([newest, ...places.map(({ snapshot }) => snapshot)])) {
      if (![...missing.values()].some(({ snapshot }) => at === newest || snapshot === at)) continue;
      const after = (at === newest ? places[0]!.snapshot : at) - 1;
      for await (const page of hotPages(this.#catalog, id, { at, after, limit: PAGE })) {
        for (const batch of page) add(batch);
        signal?.throwIfAborted();
        await new Promise(setImmediate);
      }
    }
    const files = await Promise.all(
      [...writers.values()].map(async (writer) => ({ ...(await this.#store(writer)), batches: writer.batches })),
    );
    const release = async (): Promise<void> => {
      for (const { path } of files) await rm(path, { force: true });
    };
    return { files, release };
  }

  async #seriesOf({ id, hotSince }: TableInfo): Promise<Series> {
    const key = `${hotSince} ${id}`;
    const series = this.#series.get(key) ?? { pieces: [], queue: Promise.resolve() };
    this.#series.delete(key);
    this.#series.set(key, series);
    for (const [oldest, { pieces }] of this.#series) {
      if (this.#series.size <= KEPT_SERIES) break;
      this.#series.delete(oldest);
      for (const piece of pieces) await this.#forget(piece);
    }
    return series;
  }

  /** Pieces that hold just the batches at a snapshot; each has one more user. */
  async #cover(series: Series, table: TableInfo, at: number, signal: AbortSignal | undefined): Promise<Piece[]> {
    const known = series.pieces.filter(({ to }) => to <= at);
    const after = known.at(-1)?.to ?? 0;
    const batches = known.reduce((sum, piece) => sum + piece.batches, 0);
    if (batches < table.hotBatches) {
      const piece = await this.#encode(table.id, after, at, signal);
      known.push(piece);
      // A query of the past ends within a piece, and needs a part of it once.
      if (known.length > series.pieces.length) {
        piece.kept = true;
        series.pieces.push(piece);
        const joined = await this.#join(series, table.id, at, signal);
        if (joined) known.splice(0, known.length, ...series.pieces);
      }
    }
    for (const piece of known) piece.users++;
    return known;
  }

  /** Joins the last pieces while there are {@link FAN} of about the same size. */
  async #join(series: Series, tableId: string, at: number, signal: AbortSignal | undefined): Promise<boolean> {
    const { pieces } = series;
    let joined = false;
    for (;;) {
      const last = pieces.slice(-FAN);
      if (last.length < FAN || last.some((piece) => levelOf(piece) !== levelOf(last[0]!))) return joined;
      const piece = await this.#encode(tableId, last[0]!.from, last.at(-1)!.to, signal, at);
      piece.kept = true;
      pieces.splice(-FAN, FAN, piece);
      for (const old of last) await this.#forget(old);
      joined = true;
    }
  }

  /** Encodes the batches that were added after `from`, up to `to`, and are there at snapshot `at`. */
  async #encode(
    tableId: string,
    from: number,
    to: number,
    signal: AbortSignal | undefined,
    at: number = to,
  ): Promise<Piece> {
    await parquetReady();
    const writers = new Map<number, HotWriter>();
    let last = from;
    let batches = 0;
    const turns = new Turns();
    for await (const page of hotPages(this.#catalog, tableId, { at, after: from, upTo: to, limit: PAGE })) {
      for (const batch of page) {
        writerFor(writers, batch).add(batch);
        if (!turns.isOver) continue;
        await turns.next();
        signal?.throwIfAborted();
      }
      batches += page.length;
      last = page.at(-1)!.addedIn;
    }
    const files = await Promise.all([...writers.values()].map((writer) => this.#store(writer)));
    return { from, to: last, batches, files, users: 0, kept: false };
  }

  async #store(writer: HotWriter): Promise<HotFile> {
    const bytes = writer.finish();
    const path = join(this.#folder, `${++this.#files}.parquet`);
    await mkdir(this.#folder, { recursive: true });
    await writeFile(path, bytes);
    const { rows, schemaVersion, addedIn } = writer;
    return { path, rows, schemaVersion, addedIn };
  }

  async #letGo(piece: Piece): Promise<void> {
    piece.users--;
    await this.#removeUnused(piece);
  }

  async #forget(piece: Piece): Promise<void> {
    piece.kept = false;
    await this.#removeUnused(piece);
  }

  async #removeUnused({ users, kept, files }: Piece): Promise<void> {
    if (users > 0 || kept) return;
    for (const { path } of files) await rm(path, { force: true });
  }
}

/** Batches of one schema version on their way into one file. */
class HotWriter {
  readonly schemaVersion: number;
  readonly addedIn: number;
  readonly #schema: Schema;
  readonly #encoder: ParquetEncoder;
  readonly #chunks: Uint8Array[] = [];
  readonly batches: (BatchPlace & { readonly rows: number })[] = [];
  #waiting: RecordBatch[] = [];
  #waitingRows = 0;
  #rows = 0;

  /** After `parquetReady`. */
  constructor({ schema, schemaVersion, addedIn }: HotBatch) {
    this.schemaVersion = schemaVersion;
    this.addedIn = addedIn;
    this.#schema = schema;
    // Read soon, by this process: the smallest file is not the fastest.
    this.#encoder = new ParquetEncoder(storedSchema(schema), { compression: "uncompressed", pageIndex: false });
  }

  get rows(): number {
    return this.#rows;
  }

  add({ data, addedIn: snapshot, batchId, rows }: HotBatch): void {
    this.batches.push({ snapshot, batchId, rows });
    const batch = decodeRecordBatch(this.#schema, data);
    this.#waiting.push(batch);
    this.#waitingRows += batch.length;
    this.#rows += batch.length;
    if (this.#waitingRows >= GROUP_ROWS) this.#write();
  }

  finish(): Uint8Array {
    if (this.#waitingRows > 0) this.#write();
    return Buffer.concat([...this.#chunks, ...this.#encoder.finish()]);
  }

  #write(): void {
    this.#chunks.push(...this.#encoder.writeRowGroup(concatBatches(this.#waiting)));
    this.#waiting = [];
    this.#waitingRows = 0;
  }
}

function writerFor(writers: Map<number, HotWriter>, batch: HotBatch): HotWriter {
  const writer = writers.get(batch.schemaVersion) ?? new HotWriter(batch);
  writers.set(batch.schemaVersion, writer);
  return writer;
}

function placeKey(snapshot: number, batchId: string): string {
  return `${snapshot} ${batchId}`;
}

/** Pieces of one level have about the same size. */
function levelOf({ batches }: Piece): number {
  return Math.floor(Math.log2(batches) / Math.log2(FAN));
}

/** Runs work once what came before it is done, whatever came of that. */
function next<T>(series: Series, work: () => Promise<T>): Promise<T> {
  const result = series.queue.then(work, work);
  series.queue = result.catch(() => undefined);
  return result;
}
