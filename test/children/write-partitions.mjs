// Writes rows of many partitions in random order, as objects or into a table, and prints what came of it, with the most
// uploads that were under way at once.
import { SqliteCatalog } from "@eider/catalog";
import { FileStore } from "@eider/storage";
import { S3Store } from "@eider/storage/s3";
import { Lake, ParquetObjectWriter } from "eider";

const { where, s3, rows, partitions, cap, kind } = JSON.parse(process.argv[2]);
const inner = s3 ? new S3Store(s3) : new FileStore(where, { durable: false });
let uploads = 0;
let most = 0;
const put = inner.put.bind(inner);
inner.put = async (...args) => {
  most = Math.max(most, ++uploads);
  try {
    return await put(...args);
  } finally {
    uploads--;
  }
};

/** A multiplier without a common factor visits every row once, in an order that looks random. */
function* all() {
  for (let i = 0; i < rows; i++) {
    const id = (i * 7_919) % rows;
    yield { id, part: `p${id % partitions}`, text: `text of ${id}` };
  }
}

const files = { maxOpenPartitions: cap, rowGroupRows: 1000 };
const columns = { "id!": "int64", part: "string", text: "string" };
let open = 0;
let result;
if (kind === "objects") {
  const writer = await ParquetObjectWriter.open(inner, {
    ...files,
    schema: columns,
    partitionBy: ["part"],
    bufferBytes: 16_000_000,
  });
  for (const row of all()) {
    await writer.write(row);
    open = Math.max(open, writer.openPartitions);
  }
  result = await writer.close();
} else {
  const catalog = await SqliteCatalog.open({ path: ":memory:" });
  const lake = await Lake.open({ store: inner, catalog });
  const table = lake.table("t", { partitionBy: ["part"], schema: columns });
  const writer = table.writer({ ...files, batchId: "b", bufferBytes: 16_000_000 });
  await writer.writeAll(all());
  const { status, rowsAdded } = await writer.close();
  const found = await table.files();
  const { ok } = await lake.verify();
  const ids = new Set(found.map(({ partition }) => partition[0]));
  result = {
    status,
    rowsAdded,
    ok,
    batches: (await table.batches()).length,
    rows: found.reduce((sum, file) => sum + file.rows, 0),
    partitions: ids.size,
    objects: found.length,
  };
  await lake.close();
}
console.log(JSON.stringify({ ...result, most, open }));
