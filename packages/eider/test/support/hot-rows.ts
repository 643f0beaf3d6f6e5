/** Hot batches of rows, committed as an entry. */

import type { Catalog, Operation } from "@eider/catalog";
import { concatBatches, createTextParser, encodeRecordBatch, type RecordBatch, storedSchema } from "@eider/core";

/** @param batches rows by batch id, all in one entry: `{ a: [{ id: 1 }] }` */
export async function appendHot(
  catalog: Catalog,
  name: string,
  batches: Readonly<Record<string, readonly object[]>>,
): Promise<number> {
  const { id: table, schema, schemaVersion } = (await catalog.table(name))!;
  const operations = Object.entries(batches).map(([batch, rows]): Operation => {
    const parts: RecordBatch[] = [];
    const options = { format: "ndjson", unknownFields: "misfit", valueMisfits: "misfit" } as const;
    const parser = createTextParser({ schema: storedSchema(schema), ...options }, (part) => parts.push(part));
    parser.push(Buffer.from(rows.map((row) => JSON.stringify(row)).join("\n")));
    parser.end();
    const hot = { data: encodeRecordBatch(concatBatches(parts)), bounds: [] };
    return {
      op: "append",
      table,
      batch,
      hash: `rows:${batch}`,
      rows: rows.length,
      schemaVersion,
      files: [],
      hot,
      rejects: [],
    };
  });
  const result = await catalog.commit({ operations });
  if (result.status !== "committed") throw new Error(`the test's commit is ${result.status}`);
  return result.snapshot;
}
