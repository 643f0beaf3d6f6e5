/** Large inputs, the same for the same seed: a deterministic generator of event rows with good randomness. */

import { once } from "node:events";
import { createWriteStream } from "node:fs";

/** xoshiro128** (Blackman and Vigna), seeded by splitmix32. */
function randomUint32(seed: number): () => number {
  let s = seed >>> 0;
  const split = (): number => {
    s = (s + 0x9e3779b9) | 0;
    let z = s ^ (s >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  let [a, b, c, d] = [split(), split(), split(), split()];
  const rotate = (x: number, k: number): number => (x << k) | (x >>> (32 - k));
  return () => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = rotate(d, 11);
    return result;
  };
}

const TYPES = ["view", "click", "purchase", "sign_up", "search", "scroll"];
const PLACES = ["São Paulo", "Zürich", "東京", "Oslo", 'Quo"te', "Line\\break"];

/** One event of about 220 bytes as JSON. `amount` sums exactly: whole cents as integers. */
export interface Event {
  readonly id: number;
  readonly type: string;
  readonly user: string;
  readonly ts: string;
  readonly amount: number;
  readonly place: string;
  readonly context: { readonly ip: string; readonly tags: readonly string[] };
}

export function* events(count: number, seed = 1): Iterable<Event> {
  const random = randomUint32(seed);
  for (let id = 0; id < count; id++) {
    const r = random();
    yield {
      id,
      type: TYPES[r % TYPES.length]!,
      user: random().toString(16).padStart(8, "0") + random().toString(16).padStart(8, "0"),
      ts: new Date(1_900_000_000_000 + id * 37 + (r % 30)).toISOString(),
      amount: random() % 100_000,
      place: PLACES[random() % PLACES.length]!,
      context: { ip: `10.${r & 255}.${(r >> 8) & 255}.${(r >> 16) & 255}`, tags: [`t${r % 17}`, `t${r % 23}`] },
    };
  }
}

export interface Written {
  readonly rows: number;
  readonly bytes: number;
  readonly amount: bigint;
}

/** Writes events until a file has at least `bytes` bytes, and says what it wrote. */
export async function writeEvents(path: string, format: "ndjson" | "csv", bytes: number): Promise<Written> {
  const out = createWriteStream(path, { highWaterMark: 4 * 1024 * 1024 });
  let written = 0;
  let rows = 0;
  let amount = 0n;
  let chunk = format === "csv" ? "id,type,user,ts,amount,place,ip\n" : "";
  const flush = async (): Promise<void> => {
    const buffer = Buffer.from(chunk);
    chunk = "";
    written += buffer.length;
    if (!out.write(buffer)) await once(out, "drain");
  };
  for (const event of events(Number.MAX_SAFE_INTEGER)) {
    chunk += format === "csv" ? csvLine(event) : `${JSON.stringify(event)}\n`;
    rows++;
    amount += BigInt(event.amount);
    if (chunk.length > 1024 * 1024) {
      await flush();
      if (written >= bytes) break;
    }
  }
  out.end();
  await once(out, "finish");
  return { rows, bytes: written, amount };
}

function csvLine({ id, type, user, ts, amount, place, context }: Event): string {
  return `${id},${type},${user},${ts},${amount},"${place.replaceAll('"', '""')}",${context.ip}\n`;
}
