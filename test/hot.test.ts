/**
 * Every vector through two lakes: in one each append makes files, in the other the rows stay in their entries until they are
 * folded. Whatever is asked, now or of the past, has one answer.
 */

import { Lake, type LakeOptions } from "eider";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import { loadVectors, type Vector } from "./vectors.js";

/** A lake with the vector as its table `t`, a batch of each input. */
async function fill({ declared, inputs }: Vector, options: LakeOptions): Promise<Lake> {
  const lake = await Lake.open(temporaryFolder(), options);
  const table = lake.table("t", declared ? { schema: declared } : {});
  for (const [i, { bytes, format, csv }] of inputs.entries()) {
    await table.append(bytes, { batchId: `b-${i}`, format, ...(csv && { csv }), onReject: "quarantine" });
  }
  return lake;
}

/** What is said of the table at each of its snapshots, and of what changed. */
async function answers(lake: Lake, snapshots: number): Promise<unknown> {
  const table = lake.table("t");
  const rows: unknown[] = [];
  for (let at = 1; at <= snapshots; at++) {
    const { schema, rows: count } = await table.describe({ at });
    rows.push({ schema, count, rows: await lake.with({ at }).sql("FROM t") });
  }
  const changes: unknown[] = [];
  for await (const change of table.changes()) {
    if (change.kind === "append") changes.push([change.position, change.receipt.batchId, await change.rows()]);
  }
  const receipts = (await table.batches()).map(({ committedAt: _, ...receipt }) => receipt);
  return { rows, changes, receipts, rejects: await table.rejects() };
}

describe.each(loadVectors().map((vector) => [vector.name, vector] as const))("%s", (_, vector) => {
  it(vector.about, async () => {
    const snapshots = vector.inputs.length;
    await using files = await fill(vector, FILES);
    await using hot = await fill(vector, {});
    const expected = await answers(files, snapshots);
    expect(await hot.table("t").files()).toEqual([]);
    expect(await answers(hot, snapshots)).toEqual(expected);
    await hot.maintain({ fold: "all" });
    const { rows } = await hot.table("t").describe();
    expect(await hot.table("t").files()).toHaveLength(rows > 0 ? 1 : 0);
    expect(await answers(hot, snapshots)).toEqual(expected);
    expect(await hot.verify()).toMatchObject({ ok: true, findings: [] });
  });
});
