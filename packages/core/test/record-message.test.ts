/** One record batch as an Arrow message: read back by us, and by the Arrow library. */

import * as arrow from "apache-arrow";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  batchRows,
  CorruptionError,
  decodeRecordBatch,
  encodeRecordBatch,
  fromArrow,
  type RecordBatch,
  type Schema,
  sliceBatch,
  toArrowIPC,
} from "../src/index.js";
import { exactRow, generatedBatches } from "./arbitrary-batches.js";
import { batchOf } from "./column-builder.js";

/** The message within a stream: between its schema and its end marker. */
async function stream(schema: Schema, message: Uint8Array): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of toArrowIPC(schema, [])) pieces.push(piece);
  const [head, end] = pieces;
  return Buffer.concat([head!, message, end!]);
}

describe("encodeRecordBatch", () => {
  test("comes back as it was, from any place in memory", () => {
    fc.assert(
      fc.property(generatedBatches(), fc.nat(8), fc.nat(10), ({ schema, rows }, shift, from) => {
        const whole = batchOf(schema, rows);
        const batch: RecordBatch = sliceBatch(whole, Math.min(from, rows.length), rows.length);
        const message = encodeRecordBatch(batch);
        expect(message.length % 8).toBe(0);
        const memory = new Uint8Array(message.length + shift);
        memory.set(message, shift);
        const read = decodeRecordBatch(schema, memory.subarray(shift));
        expect(batchRows(read, "exact")).toEqual(rows.slice(from).map((row) => exactRow(schema.fields, row)));
      }),
    );
  });

  test("is what the Arrow library reads", async () => {
    await fc.assert(
      fc.asyncProperty(generatedBatches(), async ({ schema, rows }) => {
        const bytes = await stream(schema, encodeRecordBatch(batchOf(schema, rows)));
        const table = arrow.tableFromIPC(bytes);
        expect(table.numRows).toBe(rows.length);
        const read = [...fromArrow(table).batches].flatMap((batch) => batchRows(batch, "exact"));
        expect(read).toEqual(rows.map((row) => exactRow(schema.fields, row)));
      }),
      { numRuns: 50 },
    );
  });

  test("leaves out columns that have no type yet, and counts rows without any column", () => {
    const schema: Schema = { fields: [{ id: 1, name: "later", type: { kind: "unknown" }, nullable: true }] };
    const read = decodeRecordBatch(schema, encodeRecordBatch({ schema: { fields: [] }, length: 3, columns: [] }));
    expect(read).toEqual({ schema: { fields: [] }, length: 3, columns: [] });
  });

  test("damage is an error, or changes values, and nothing else", () => {
    const schema: Schema = {
      fields: [
        { id: 1, name: "a", type: { kind: "int64" }, nullable: true },
        { id: 2, name: "b", type: { kind: "string" }, nullable: true },
        {
          id: 3,
          name: "c",
          type: { kind: "list", element: { id: 4, name: "element", type: { kind: "int32" }, nullable: true } },
          nullable: true,
        },
      ],
    };
    const rows = [
      { a: 1n, b: "one", c: [1, null] },
      { a: null, b: null, c: null },
      { a: 3n, b: "", c: [] },
    ];
    const message = encodeRecordBatch(batchOf(schema, rows));
    const read = (bytes: Uint8Array): unknown => {
      try {
        return batchRows(decodeRecordBatch(schema, bytes), "exact").length;
      } catch (error) {
        return error;
      }
    };
    for (let length = 0; length < message.length; length += 4) {
      // The last buffer is padded.
      if (length < message.length - 8) expect(read(message.subarray(0, length))).toBeInstanceOf(CorruptionError);
    }
    fc.assert(
      fc.property(fc.nat(message.length - 1), fc.integer({ min: 1, max: 255 }), (at, bits) => {
        const damaged = message.slice();
        damaged[at]! ^= bits;
        const result = read(damaged);
        expect(result instanceof CorruptionError || result === rows.length).toBe(true);
      }),
      { numRuns: 2000 },
    );
    expect(read(encodeRecordBatch(batchOf({ fields: schema.fields.slice(0, 2) }, rows)))).toBeInstanceOf(
      CorruptionError,
    );
  });
});
