// Reads objects through a cache that others share, for ever or for so many rounds, and says what was wrong.
import { readFile } from "node:fs/promises";
import { CacheStore, FileStore, readBody } from "../../dist/index.js";

const [root, dir, maxBytes, seed, rounds] = process.argv.slice(2);
const cache = new CacheStore(new FileStore(root), {
  dir,
  maxBytes: Number(maxBytes),
  cacheable: () => true,
  wholeBytes: 60_000,
  blockBytes: 10_000,
});
let state = Number(seed);
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};
/** Object `n` has 20,000 + 3,000 n bytes, all of them n. */
const isRight = (bytes, n, length) => bytes.length === length && bytes.every((byte) => byte === n);

for (let round = 0; round < Number(rounds); round++) {
  const n = random(40);
  const size = 20_000 + 3000 * n;
  const start = random(size);
  const end = Math.min(size, start + 1 + random(30_000));
  let [what, ok] = ["get", true];
  try {
    if (round % 3 === 0) ok = isRight(await readBody((await cache.get(`o/${n}`)).body), n, size);
    else if (round % 3 === 1) {
      const { body } = await cache.get(`o/${n}`, { range: { start, end } });
      ok = isRight(await readBody(body), n, end - start);
    } else {
      what = "localize";
      const copies = await cache.localize([`o/${n}`, `o/${(n + 1) % 40}`]);
      ok = isRight(await readFile(copies.paths[0]), n, size);
      await copies.release();
    }
  } catch (error) {
    console.log(`${what} of ${n} failed: ${error.stack}`);
    process.exit(1);
  }
  if (!ok) {
    console.log(`${what} of ${n} gave wrong bytes`);
    process.exit(1);
  }
}
await cache[Symbol.asyncDispose]();
console.log("done");
