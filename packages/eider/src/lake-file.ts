/** `_eider/lake.json`: what makes a store a lake, which one, and who decides what is committed to it. */

import { AlreadyExistsError, CatalogError, CorruptionError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import { findObject } from "./read-object.js";

const LAKE_KEY = "_eider/lake.json";
/** There as long as the place is being made a copy of a lake: see `copy.ts`. */
export const COPY_MARK = "_eider/copy.json";
/** Layout version of the store; a higher one is refused. */
const FORMAT = 1;

export interface LakeFile {
  readonly format: number;
  readonly lake: string;
  readonly mode: "local" | "shared";
  /** Of a local lake: the one catalog that serves it. */
  readonly catalog?: string;
  /** Of a local lake that goes on elsewhere: its catalog commits nothing any more, not even one from a backup. */
  readonly moved?: true;
}

/**
 * Undefined if the store is no lake yet.
 * @throws CorruptionError `bad_lake_file`; CatalogError `lake_too_new`
 */
export async function readLakeFile(store: ObjectStore): Promise<LakeFile | undefined> {
  const found = await findObject(store, LAKE_KEY);
  if (!found) return undefined;
  const damaged = (reason: string, cause?: unknown): CorruptionError =>
    new CorruptionError("bad_lake_file", `${LAKE_KEY} at ${store.url} ${reason}`, { subject: store.url, cause });
  let file: Partial<LakeFile>;
  try {
    file = JSON.parse(found.bytes.toString("utf8")) as Partial<LakeFile>;
  } catch (cause) {
    throw damaged("is not JSON", cause);
  }
  const { format, lake, mode, catalog } = file;
  if (typeof format !== "number") throw damaged("lacks its format");
  if (format > FORMAT || (typeof mode === "string" && mode !== "local" && mode !== "shared")) {
    throw new CatalogError(
      "lake_too_new",
      `the lake at ${store.url} has format ${format} (${mode}), this version reads up to ${FORMAT}: upgrade eider`,
      { subject: store.url },
    );
  }
  if (mode === "shared" && typeof lake === "string") return { format, lake, mode };
  if (typeof lake !== "string" || typeof catalog !== "string") throw damaged("lacks its lake or catalog");
  return { format, lake, mode: "local", catalog, ...(file.moved && { moved: true }) };
}

/** Makes the store a lake; if another process does at the same moment, its file counts. */
export async function writeLakeFile(
  store: ObjectStore,
  content: Omit<LakeFile, "format">,
): Promise<LakeFile | undefined> {
  const file: LakeFile = { format: FORMAT, ...content };
  try {
    await store.put(LAKE_KEY, Buffer.from(`${JSON.stringify(file)}\n`), { ifAbsent: true });
    return file;
  } catch (error) {
    if (error instanceof AlreadyExistsError) return readLakeFile(store);
    throw error;
  }
}

/** Says of a local lake that it goes on elsewhere. */
export async function markMoved(store: ObjectStore): Promise<void> {
  const file = await readLakeFile(store);
  await store.put(LAKE_KEY, Buffer.from(`${JSON.stringify({ ...file, moved: true })}\n`));
}
