/** Compares what the catalog says with what the store holds. */

import { createHash } from "node:crypto";
import { type Catalog, type HotBatch, hotPages, type ListedFile } from "@eider/catalog";
import { CorruptionError, decodeRecordBatch, NotFoundError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import type { VerifyFinding, VerifyOptions, VerifyReport } from "./options.js";
import { dataFiles } from "./orphans.js";

/** Hot batches in memory at once: at 64 KiB, 8 MiB. */
const PAGE = 128;

export async function verify(
  { store, catalog }: { store: ObjectStore; catalog: Catalog },
  options: VerifyOptions,
): Promise<VerifyReport> {
  const { snapshot } = await catalog.head();
  const files: ListedFile[] = [];
  const findings: VerifyFinding[] = [];
  let hotBatches = 0;
  for (const table of await catalog.tables(snapshot)) {
    files.push(...(await catalog.files(table.id, snapshot, { statistics: false })));
    for await (const page of hotPages(catalog, table.id, { at: snapshot, limit: PAGE })) {
      options.signal?.throwIfAborted();
      findings.push(...page.flatMap((batch) => checkHot(table.name, batch) ?? []));
      hotBatches += page.length;
    }
  }
  let bytes = 0;
  for (const [index, file] of files.entries()) {
    options.signal?.throwIfAborted();
    const finding = await check(store, file, options);
    if (finding) findings.push(finding);
    bytes += file.bytes;
    options.onProgress?.({ files: index + 1, totalFiles: files.length, bytes });
  }
  const broken = findings.length;
  for await (const page of dataFiles(store, options.signal)) {
    const referenced = await catalog.referencedKeys(page.map(({ key }) => key));
    for (const { key } of page) {
      if (referenced.has(key)) continue;
      findings.push({ kind: "stray", key, message: "no snapshot names this object; queries never read it" });
    }
  }
  return { ok: broken === 0, files: files.length, bytes, hotBatches, findings };
}

/** Whether the catalog's copy of a batch is what its schema says. */
function checkHot(table: string, { batchId, schema, rows, data }: HotBatch): VerifyFinding | undefined {
  const damaged = (message: string): VerifyFinding => ({ kind: "batch", key: `${table}/${batchId}`, message });
  try {
    const { length } = decodeRecordBatch(schema, data);
    return length === rows ? undefined : damaged(`the hot batch has ${length} rows, committed were ${rows}`);
  } catch (error) {
    if (!(error instanceof CorruptionError)) throw error;
    return damaged("the hot batch cannot be read");
  }
}

async function check(store: ObjectStore, file: ListedFile, options: VerifyOptions): Promise<VerifyFinding | undefined> {
  const { key } = file;
  const missing: VerifyFinding = { kind: "missing", key, message: "the data file is gone" };
  const info = await store.head(key);
  if (!info) return missing;
  if (info.size !== file.bytes) {
    return { kind: "size", key, message: `the data file has ${info.size} bytes, committed were ${file.bytes}` };
  }
  if (options.hashes === false) return undefined;
  const hash = createHash("sha256");
  try {
    const { body } = await store.get(key, options.signal ? { signal: options.signal } : {});
    for await (const chunk of body) hash.update(chunk);
  } catch (error) {
    if (error instanceof NotFoundError) return missing;
    throw error;
  }
  return hash.digest("hex") === file.sha256
    ? undefined
    : { kind: "hash", key, message: "the data file's bytes are not those that were committed" };
}
