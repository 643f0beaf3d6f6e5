/** Encodes one long text in a browser, by one thread and by web workers, and tells what came of it. Runs in Node too. */

import { assignFieldIds, type Compression, createTextParser, encodeParquet, parquetReady, toSchema } from "@eider/core";
import { type EncodeProgress, encodeText, type RangePool, webWorkers } from "@eider/core/ranges";

export interface PageResult {
  readonly sha256: string;
  readonly rows: number;
  readonly rejects: readonly string[];
  readonly workers: number;
  readonly progress: EncodeProgress | undefined;
}

const LINES = 40_000;
const SCHEMA = assignFieldIds(
  toSchema({ id: "int64", name: "string", tags: "list<string>", at: "timestamptz", score: "float64" }),
);
/** Small ranges, so that a text of a few megabytes has many. */
const LIMITS = { limits: { lines: 2000, bytes: 64 * 1024 }, minBytes: 0 };

/** NDJSON with bad lines, blank ones, and text beyond ASCII, in pieces that end anywhere. */
export function* textPieces(lines = LINES): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  let rest = "";
  for (let i = 0; i < lines; i++) {
    if (i % 9973 === 500) rest += `{"id":${i},\n`;
    else if (i % 997 === 30) rest += "\r\n";
    else {
      rest += `{"id":${i},"name":"Zoë ${(i * 7919) % 100_003}","tags":["t${i % 5}"],"at":"2031-01-01T00:00:${String(i % 60).padStart(2, "0")}Z","score":${i / 8}}\n`;
    }
    if (rest.length > 50_000) {
      yield encoder.encode(rest);
      rest = "";
    }
  }
  yield encoder.encode(rest);
}

const text = { schema: SCHEMA, format: "ndjson", unknownFields: "misfit", valueMisfits: "reject" } as const;

async function encoded(pool: RangePool | undefined): Promise<Omit<PageResult, "workers">> {
  const parts: Uint8Array[] = [];
  let progress: EncodeProgress | undefined;
  const file = encodeText(textPieces(), {
    ...text,
    ...(pool && { pool }),
    onProgress: (now) => {
      progress = now;
    },
  });
  for (;;) {
    const { done, value } = await file.next();
    if (done) {
      const { rows, rejects } = value;
      const all = new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer());
      return {
        sha256: await sha256(all),
        rows,
        rejects: rejects.map(({ line, code }) => `${line}: ${code}`),
        progress,
      };
    }
    parts.push(value.slice());
  }
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** By as many threads; `script` is the workers' entry. */
export async function encodeWith(threads: number, script: string): Promise<PageResult> {
  let workers = 0;
  const create = (): Worker => {
    workers++;
    return new Worker(script, { type: "module" });
  };
  await using pool = webWorkers(create, { threads, ...LIMITS });
  return { ...(await encoded(pool)), workers };
}

/** Without workers, which a host may lack. */
export async function encodeAlone(): Promise<PageResult> {
  await using pool = webWorkers(() => new Worker("none"), { threads: 1, ...LIMITS });
  return { ...(await encoded(pool)), workers: 0 };
}

/** What crosses from a worker: an error of its kind, with its line; and what the next text finds. */
export async function failWith(script: string): Promise<{ name: string; line: unknown; after: PageResult["rows"] }> {
  await using pool = webWorkers(() => new Worker(script, { type: "module" }), { threads: 2, ...LIMITS });
  const bad = async function* (): AsyncGenerator<Uint8Array> {
    yield* textPieces(20_000);
    yield new TextEncoder().encode('{"id":1,"other":2}\n');
  };
  let failure: { name?: string; line?: unknown } = {};
  try {
    for await (const _ of encodeText(bad(), { ...text, pool })) {
    }
  } catch (error) {
    failure = error as Error;
  }
  return { name: String(failure.name), line: failure.line, after: (await encoded(pool)).rows };
}

/** An abort while workers are busy: how it ended, and that nothing more was read. */
export async function abortWith(script: string): Promise<{ reason: string; read: number; after: PageResult["rows"] }> {
  await using pool = webWorkers(() => new Worker(script, { type: "module" }), { threads: 2, ...LIMITS });
  const controller = new AbortController();
  let read = 0;
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    for (;;) {
      for (const piece of textPieces(2000)) {
        read++;
        yield piece;
        if (read === 40) setTimeout(() => controller.abort("enough"));
        if (read >= 40) await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  };
  let reason = "";
  try {
    for await (const _ of encodeText(endless(), { ...text, pool, signal: controller.signal })) {
    }
  } catch (error) {
    reason = String(error);
  }
  return { reason, read, after: (await encoded(pool)).rows };
}

/** A reader that takes no bytes: how far the text is read meanwhile, in pieces. */
export async function readAhead(script: string): Promise<number> {
  await using pool = webWorkers(() => new Worker(script, { type: "module" }), { threads: 2, ...LIMITS });
  let read = 0;
  const counted = function* (): Generator<Uint8Array> {
    for (const piece of textPieces(LINES)) {
      read++;
      yield piece;
    }
  };
  const file = encodeText(counted(), { ...text, pool });
  await file.next();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const ahead = read;
  await file.return({ rows: 0, rejects: [], ignoredFields: new Map(), statistics: [] });
  return ahead;
}

/** A file by each codec, in base64, or the error's code and text. */
export async function compressed(
  codecs: readonly (readonly [compression: Compression, level?: number])[],
): Promise<string[]> {
  const parser = createTextParser(text);
  for (const piece of textPieces(2000)) parser.push(piece);
  parser.end();
  const batch = parser.take()!;
  const files: string[] = [];
  for (const [compression, compressionLevel] of codecs) {
    const options = { compression, ...(compressionLevel !== undefined && { compressionLevel }) };
    try {
      await parquetReady(options);
      const { bytes } = encodeParquet(SCHEMA, [batch], options);
      files.push(btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")));
    } catch (error) {
      files.push(`${(error as { code?: string }).code}: ${(error as Error).message}`);
    }
  }
  return files;
}
