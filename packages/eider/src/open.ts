/**
 * Opening and creating lakes. `_eider/lake.json` says that a folder is a lake, which one, and which catalog serves it:
 * a second catalog for the same store is refused. Lakes at the same place share everything within a process.
 */

import { statSync } from "node:fs";
import { mkdir, readdir, realpath, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Catalog, type Draft, realTimer, SqliteCatalog, type Timer } from "@eider/catalog";
import { CatalogError, InvalidInputError, NotFoundError, StoreError } from "@eider/core";
import { secureRandom } from "@eider/core/node";
import type { RangePool } from "@eider/core/ranges";
import { QueryEngine } from "@eider/query";
import { FileStore, MemoryStore, type ObjectStore, openStore } from "@eider/storage";
import { uuidv7 } from "./ids.js";
import { copiesFolder } from "./lake-cache.js";
import { readLakeFile, writeLakeFile } from "./lake-file.js";
import { catalogPath } from "./local/catalog-path.js";
import { Journal } from "./local/journal.js";
import type { LakeLocation, LakeOptions, Logger } from "./options.js";
import { rangeThreads } from "./range-threads.js";
import { indexCopies } from "./shared/index-copies.js";
import { openSharedCatalog } from "./shared/open.js";

const INLINE_BYTES = 64 * 1024;

/** The parts of an open lake, shared by all handles to it in this process. */
export interface OpenLake {
  readonly store: ObjectStore;
  readonly catalog: Catalog;
  readonly readOnly: boolean;
  readonly tempFolder: string;
  readonly logger: Logger;
  readonly clock: () => number;
  readonly newId: () => string;
  /** The worker threads of large appends. */
  readonly ranges: RangePool;
  readonly timer: Timer;
  /** Of this handle: see `LakeOptions`. */
  readonly inlineBytes: number;
  /** Something was purged: resolves once what the store keeps of the catalog has it no more. */
  forget(): Promise<void>;
  /** DuckDB is loaded by the first call. */
  engine(): Promise<QueryEngine>;
  /** Gives this handle up; the last one closes the parts. */
  release(): Promise<void>;
}

interface Shared {
  readonly lake: Promise<OpenLake>;
  users: number;
  /** Which file its catalog is, once it is open. */
  file: string | undefined;
}

const openLakes = new Map<string, Shared>();

/** @throws NotFoundError `lake_not_found`, `not_a_lake` @throws CatalogError `lake_too_new`, `catalog_mismatch` */
export async function openLake(where: LakeLocation, options: LakeOptions): Promise<OpenLake> {
  if (typeof where !== "string" && !(where instanceof URL)) {
    if (typeof where?.store?.put === "function") {
      return "catalog" in where ? assemble(where.store, where.catalog, options) : openShared(where.store, options);
    }
    throw new InvalidInputError(
      "bad_location",
      'a lake is opened at a folder ("./lake"), a file: URL or "memory:", or from { store } or { store, catalog }',
    );
  }
  const mode = options.mode ?? "create";
  const store = await openStore(where, { readOnly: mode === "read" });
  if (store instanceof MemoryStore) return assemble(store, await openCatalog(":memory:", "create", options), options);
  const access = `${mode === "read" ? "read" : "write"}:${JSON.stringify(options.sqlAccess ?? "all")}`;
  if (!(store instanceof FileStore)) {
    // As two hosts they would see each other's commits only after a while.
    const key = `${access}:${options.cacheDir ?? ""}:${where}`;
    const known = openLakes.get(key);
    const disposing = known && store[Symbol.asyncDispose]();
    const shared = known ?? share(key, undefined, openRemote(store, options));
    await disposing;
    return use(key, shared, options);
  }
  const folder = fileURLToPath(store.url);
  const root = await realpath(folder).catch(() => folder);
  if (await isFile(root)) throw new NotFoundError("not_a_lake", `${root} is not a folder`, { subject: root });
  const key = `${access}:${root}`;
  const known = openLakes.get(key);
  // A folder that was deleted, or put in another's place, is another lake, whoever still has the old one open.
  const shared =
    known && (known.file === undefined || known.file === catalogFile(root))
      ? known
      : share(key, root, openFolder(store, root, mode, options));
  return use(key, shared, options);
}

async function use(key: string, shared: Shared, { inlineBytes = INLINE_BYTES }: LakeOptions): Promise<OpenLake> {
  shared.users++;
  const lake = await shared.lake;
  return {
    ...lake,
    inlineBytes,
    async release() {
      if (--shared.users > 0) return;
      forget(key, shared);
      await lake.release();
    },
  };
}

/** @param root of a lake in a folder */
function share(key: string, root: string | undefined, lake: Promise<OpenLake>): Shared {
  const shared: Shared = { lake, users: 0, file: undefined };
  openLakes.set(key, shared);
  lake.then(
    () => {
      if (root !== undefined) shared.file = catalogFile(root);
    },
    () => forget(key, shared),
  );
  return shared;
}

function forget(key: string, shared: Shared): void {
  if (openLakes.get(key) === shared) openLakes.delete(key);
}

/** Which file the catalog of a folder is, whatever its content; empty if there is none. */
function catalogFile(root: string): string {
  const info = statSync(catalogPath(root), { bigint: true, throwIfNoEntry: false });
  return info ? `${info.dev} ${info.ino}` : "";
}

async function openFolder(
  store: FileStore,
  root: string,
  mode: "create" | "open" | "read",
  options: LakeOptions,
): Promise<OpenLake> {
  const existing = await readLakeFile(store);
  if (existing?.mode === "shared") return openShared(store, options);
  const path = catalogPath(root);
  if (existing) {
    const opening = openJournaled(store, path, mode === "create" ? "open" : mode, options);
    const { catalog, journal } = await opening.catch((cause: unknown) => {
      if (!(cause instanceof NotFoundError)) throw cause;
      throw new CatalogError(
        "catalog_missing",
        `the lake at ${root} has lost its catalog ${path}: restore it from a backup, or make it again with Lake.rebuild or \`eider rebuild\``,
        {
          subject: path,
          cause,
        },
      );
    });
    return assemble(store, catalog, options, journal);
  }
  const entries = await readdir(root).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") return [];
    throw new StoreError("store_unreadable", `cannot read ${root} (${cause.code ?? "unknown error"})`, {
      subject: root,
      cause,
    });
  });
  if (entries.some((name) => name !== "_eider")) {
    throw new NotFoundError("not_a_lake", `${root} holds other files and is not a lake: choose a new or empty folder`, {
      subject: root,
    });
  }
  if (mode !== "create") {
    throw new NotFoundError("lake_not_found", `there is no lake at ${root}: the first append makes one`, {
      subject: root,
    });
  }
  try {
    await mkdir(join(root, "_eider"), { recursive: true });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new StoreError("store_read_only", `cannot make a lake at ${root} (${code ?? "unknown error"})`, {
      subject: root,
      cause,
    });
  }
  const { catalog, journal } = await openJournaled(store, path, "create", options);
  return assemble(store, catalog, options, journal);
}

/** The catalog of a folder, whose commits are kept in the store too. */
async function openJournaled(
  store: FileStore,
  path: string,
  mode: "create" | "open" | "read",
  options: LakeOptions,
): Promise<{ readonly catalog: Catalog; readonly journal?: Journal }> {
  let journal: Journal | undefined;
  const catalog = await openCatalog(path, mode, options, (draft) => journal?.note(draft));
  if (mode === "read") return { catalog };
  const copies = indexCopies({ path, lake: catalog.lakeId });
  journal = new Journal({ store, catalog, copies, logger: options.logger ?? {} });
  return { catalog, journal };
}

async function isFile(path: string): Promise<boolean> {
  const info = await stat(path).catch(() => undefined);
  return info !== undefined && !info.isDirectory();
}

function openCatalog(
  path: string,
  mode: "create" | "open" | "read",
  options: LakeOptions,
  onCommit?: (draft: Draft) => void,
): Promise<SqliteCatalog> {
  return SqliteCatalog.open({
    path,
    mode,
    ...(onCommit && { onCommit }),
    ...(options.clock && { clock: options.clock }),
    random: options.random ?? secureRandom,
    ...(options.timer && { timer: options.timer }),
  });
}

async function openRemote(store: ObjectStore, options: LakeOptions): Promise<OpenLake> {
  try {
    return await openShared(store, options);
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

async function openShared(store: ObjectStore, options: LakeOptions): Promise<OpenLake> {
  return assemble(store, await openSharedCatalog(store, options, sources(options)), options);
}

/** Where time, chance and ids come from. */
function sources({ clock = Date.now, random = secureRandom, timer = realTimer }: LakeOptions) {
  return { clock, random, timer, newId: () => uuidv7(clock(), random) };
}

/**
 * Binds a store and a catalog to each other, for ever: by `lake.json` in the store. A shared lake has no catalog of its
 * own, only indexes of its log.
 */
async function assemble(
  store: ObjectStore,
  catalog: Catalog,
  options: LakeOptions,
  journal?: Journal,
): Promise<OpenLake> {
  const mode = options.mode ?? "create";
  try {
    const own = { lake: catalog.lakeId, mode: catalog.kind, catalog: catalog.catalogId };
    const found = (await readLakeFile(store)) ?? (mode === "create" ? await writeLakeFile(store, own) : undefined);
    if (!found) throw new NotFoundError("lake_not_found", `there is no lake at ${store.url}`, { subject: store.url });
    const matches = found.mode === "local" ? found.catalog === own.catalog : found.lake === own.lake;
    if (found.mode !== own.mode || !matches) {
      const theirs = found.mode === "local" ? found.catalog : "one that is shared by hosts";
      throw new CatalogError(
        "catalog_mismatch",
        `the lake at ${store.url} belongs to another catalog (${theirs}, not ${own.catalog}): open it with its own`,
        { subject: store.url },
      );
    }
    // A catalog from a backup does not know that its lake has moved.
    while (found.moved && mode !== "read" && !(await catalog.retire((await catalog.head()).snapshot)));
  } catch (error) {
    await catalog[Symbol.asyncDispose]();
    throw error;
  }
  const { clock, timer, newId } = sources(options);
  const tempFolder = resolve(options.cacheDir ?? tmpdir());
  const cacheFolder = copiesFolder(store, options.cacheDir, catalog.lakeId);
  const logger = options.logger ?? {};
  const ranges = rangeThreads({ threads: options.threads, logger });
  let engine: Promise<QueryEngine> | undefined;
  return {
    store,
    catalog,
    readOnly: mode === "read",
    tempFolder,
    logger,
    clock,
    newId,
    ranges,
    timer,
    inlineBytes: options.inlineBytes ?? INLINE_BYTES,
    forget: async () => journal?.forget(),
    engine() {
      const opening =
        engine ??
        QueryEngine.open({
          catalog,
          store,
          tempDir: tempFolder,
          ...(options.cacheBytes !== undefined && { cacheBytes: options.cacheBytes }),
          ...(cacheFolder !== undefined && { cacheFolder }),
          ...(options.wholeFileBytes !== undefined && { wholeFileBytes: options.wholeFileBytes }),
          ...(options.memoryBytes !== undefined && { memoryBytes: options.memoryBytes }),
          ...(options.threads !== undefined && { threads: options.threads }),
          ...(options.sqlAccess && { sqlAccess: options.sqlAccess }),
        });
      if (engine !== opening) {
        engine = opening;
        // What stood in the way may be gone at the next query.
        opening.catch(() => {
          engine = undefined;
        });
      }
      return opening;
    },
    async release() {
      const opened = await engine?.catch(() => undefined);
      try {
        await opened?.[Symbol.asyncDispose]();
      } finally {
        await ranges[Symbol.asyncDispose]();
        await journal?.close();
        await catalog[Symbol.asyncDispose]();
        await store[Symbol.asyncDispose]();
      }
    },
  };
}
