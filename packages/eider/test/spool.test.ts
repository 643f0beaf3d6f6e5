import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { Lake } from "../src/index.js";
import { spoolRows, spoolToFile } from "../src/source/spool.js";

/** More rows than a spool keeps in memory. */
const MANY = 25_000;

let lake: Lake | undefined;
afterEach(async () => {
  await lake?.close();
  lake = undefined;
});

/** As numbers of decimal libraries, ids of databases and rows of object mappers are. */
class Price {
  readonly #cents: number;
  constructor(cents: number) {
    this.#cents = cents;
  }
  toJSON(): string {
    return `${this.#cents} cents`;
  }
}

it("keeps what objects say of themselves, however many rows there are before a value that needs another pass", async () => {
  lake = await Lake.open("memory:");
  const sales = lake.table("sales");
  const source = async function* () {
    for (let id = 0; id < MANY; id++) {
      yield { id, price: new Price(id), link: new URL(`http://example.org/${id}`), x: id === MANY - 1 ? "late" : id };
    }
  };
  await sales.append(source(), { batchId: "one" });
  expect(await lake.sql(`SELECT price, link FROM sales WHERE id = ${MANY - 1}`)).toEqual([
    { price: `${MANY - 1} cents`, link: `http://example.org/${MANY - 1}` },
  ]);
  expect((await sales.append(source(), { batchId: "one" })).status).toBe("duplicate");
});

it("takes rows behind a proxy, and names late ones that no table takes", async () => {
  lake = await Lake.open("memory:");
  const table = lake.table("t");
  const source = async function* () {
    for (let id = 0; id < MANY; id++) {
      yield id === MANY - 2 ? { id, f: () => 1 } : new Proxy({ id, x: id === MANY - 1 ? "late" : id }, {});
    }
  };
  const failed = table.append(source());
  await expect(failed).rejects.toMatchObject({ code: "rejected_rows", rows: [{ line: MANY - 1 }] });
  expect(await table.append(source(), { onReject: "quarantine" })).toMatchObject({
    rowsAdded: MANY - 1,
    rowsRejected: 1,
  });
});

it("gives rows again that are as the source's, whatever they hold", async () => {
  const rows = [
    ...Array.from({ length: 20_000 }, (_, id) => ({ id })),
    {
      n: Number.NaN,
      zero: -0,
      big: 2n ** 70n,
      at: new Date(5),
      list: [1, undefined, [null]],
      map: new Map([[1n, "a"]]),
    },
    { bytes: new Uint8Array(new SharedArrayBuffer(2)), clamped: Uint8ClampedArray.of(7), floats: Float32Array.of(0.5) },
    JSON.parse('{"__proto__":{"a":1},"b":2}'),
    Symbol.iterator,
    "text",
  ];
  await using spool = spoolRows(
    (async function* () {
      yield rows.slice(0, 20_000);
      yield rows.slice(20_000);
    })(),
    tmpdir(),
  );
  for await (const _ of spool.open());
  const again: unknown[] = [];
  for await (const chunk of spool.open()) again.push(...chunk);
  const [values, bytes, proto, ...others] = again.slice(20_000);
  expect(values).toStrictEqual(rows[20_000]);
  expect(bytes).toStrictEqual({ bytes: Uint8Array.of(0, 0), clamped: Uint8Array.of(7), floats: [0.5] });
  expect(Object.entries(proto as object)).toEqual([
    ["__proto__", { a: 1 }],
    ["b", 2],
  ]);
  expect(others).toEqual([Symbol.iterator, "text"]);
});

it("names the folder for temporary files that cannot be written", async () => {
  const folder = fileURLToPath(import.meta.url);
  await using spool = spoolRows(
    (async function* () {
      yield Array.from({ length: 20_000 }, (_, id) => ({ id }));
      yield [{ id: 0 }];
    })(),
    folder,
  );
  const read = async (): Promise<void> => {
    for await (const _ of spool.open());
  };
  await expect(read()).rejects.toMatchObject({ name: "StoreError", code: "temporary_file", subject: folder });
});

it("of a stream that goes to a file, the folder's fault and the source's are told apart", async () => {
  const place = mkdtempSync(join(tmpdir(), "eider-spool-"));
  const folder = join(place, "file");
  writeFileSync(folder, "");
  const chunks = (): AsyncIterable<Uint8Array> => Readable.from([Buffer.from("ab"), Buffer.from("c")]);
  await expect(spoolToFile(chunks(), folder)).rejects.toMatchObject({ code: "temporary_file", subject: folder });
  const failing = (async function* () {
    yield Buffer.from("ab");
    throw new Error("of the source");
  })();
  await expect(spoolToFile(failing, place)).rejects.toThrow("of the source");
  expect(readdirSync(place)).toEqual(["file"]);
  {
    await using spooled = await spoolToFile(chunks(), place);
    expect(readFileSync(spooled.path, "utf8")).toBe("abc");
  }
  expect(readdirSync(place)).toEqual(["file"]);
  rmSync(place, { recursive: true });
});
