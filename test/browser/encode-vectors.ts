/** What every host has to make of the test vectors: runs in Node, in a page and in a web worker. */

import { formatType, parquetReady, storedSchema } from "@eider/core";
import { VectorTable } from "../vector-table.js";
import type { Vector } from "../vectors.js";
import { hyparquetRows } from "./hyparquet-rows.js";

/** A vector as JSON, bytes in base64. */
export interface PortableVector extends Pick<Vector, "name" | "declared" | "parquet"> {
  readonly inputs: readonly (Pick<Vector["inputs"][number], "format" | "csv"> & { readonly base64: string })[];
}

export interface HostResult {
  readonly name: string;
  /** The table's in the end. */
  readonly schema: Readonly<Record<string, string>>;
  /** Of each input's Parquet file: SHA-256 in hex, its rows as hyparquet reads them, and the lines set aside. */
  readonly files: readonly { readonly sha256: string; readonly rows: unknown[]; readonly rejects: readonly string[] }[];
}

export function toPortable({ name, declared, parquet, inputs }: Vector): PortableVector {
  const portable = inputs.map(({ format, csv, bytes }) => ({ format, csv, base64: btoa(binaryText(bytes)) }));
  return { name, declared, parquet, inputs: portable };
}

/**
 * Encodes each vector and says what came of it: {@link HostResult}s as text for {@link readResults}, which leaves a page
 * whole. Browsers' own messages to tests lose keys such as `__proto__`, and JSON loses −0.
 */
export async function encodeVectors(vectors: readonly PortableVector[]): Promise<string> {
  const results: HostResult[] = [];
  for (const vector of vectors) results.push(await encodeVector(vector));
  return JSON.stringify(results, (_key, value: unknown) => (Object.is(value, -0) ? "-0" : value));
}

export function readResults(text: string): HostResult[] {
  return JSON.parse(text, (_key, value: unknown) => (value === "-0" ? -0 : value)) as HostResult[];
}

async function encodeVector(vector: PortableVector): Promise<HostResult> {
  await parquetReady(vector.parquet);
  const table = new VectorTable(vector);
  const files: HostResult["files"][number][] = [];
  for (const { format, csv, base64 } of vector.inputs) {
    const input = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const { bytes, rejects } = table.append({ format, csv, bytes: input });
    // A copy: the digest refuses views of memory that could be shared.
    const file = Uint8Array.from(bytes);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", file));
    files.push({
      sha256: Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join(""),
      rows: await hyparquetRows(file, storedSchema(table.schema)),
      rejects: rejects.map(({ line, code }) => `${line}: ${code}`),
    });
  }
  const schema = table.schema.fields.map(({ name, type, nullable }) => [
    name + (nullable ? "" : "!"),
    formatType(type),
  ]);
  return { name: vector.name, schema: Object.fromEntries(schema) as Record<string, string>, files };
}

function binaryText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}
