import { createRequire } from "node:module";
import fc from "fast-check";
import { decompress as fzstd } from "fzstd";
import { compressors } from "hyparquet-compressors";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { type Compression, compressionCodec, parquetReady } from "../src/compression.js";
import { EncodeMemory } from "../src/parquet-memory.js";

/** Zstandard's own decoder. */
const zstd = createRequire(import.meta.url)("@foxglove/wasm-zstd") as {
  isLoaded: Promise<boolean>;
  compress(bytes: Uint8Array, level: number): Uint8Array;
  decompress(bytes: Uint8Array, size: number): Uint8Array;
};

beforeAll(async () => {
  await Promise.all([parquetReady(), zstd.isLoaded]);
});

function compress(name: Compression, bytes: Uint8Array): Uint8Array {
  const codec = compressionCodec(name);
  return EncodeMemory.use((memory) => {
    const { at, length } = codec.compress(memory, memory.copyIn(bytes), bytes.length);
    return memory.bytes(at, length);
  });
}

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

/** Throws unless decoders that are not ours give the bytes back. */
function check(bytes: Uint8Array): void {
  const packed = compress("zstd", bytes);
  expect(same(zstd.decompress(packed, bytes.length), bytes)).toBe(true);
  // fzstd keeps at most 2 MiB of an uncompressed frame in one go.
  if (bytes.length < 1 << 20) expect(same(fzstd(packed), bytes)).toBe(true);
  expect(same(compressors.SNAPPY!(compress("snappy", bytes), bytes.length), bytes)).toBe(true);
  if (bytes.length > 0) expect(same(compressors.LZ4_RAW!(compress("lz4raw", bytes), bytes.length), bytes)).toBe(true);
}

/** splitmix32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** Bytes that exercise what compressors decide by: matches, their distances, how literals are spread. */
const KINDS: Record<string, (at: number, bytes: Uint8Array, random: () => number) => number> = {
  noise: (_at, _bytes, random) => random() * 256,
  hex: (_at, _bytes, random) => "0123456789abcdef".charCodeAt(random() * 16),
  constant: () => 7,
  periodic: (at, bytes, random) => (at > 37 && random() < 0.98 ? bytes[at - 37]! : random() * 256),
  // Each value half as often as the one before: codes would be deeper than allowed.
  steep: (_at, _bytes, random) => Math.min(250, Math.floor(-Math.log2(random() + 1e-12)) * 9),
  sparse: (_at, _bytes, random) => (random() < 0.999 ? 0 : random() * 256),
  far: (at, bytes, random) => (at > 70_000 && random() < 0.999 ? bytes[at - 70_000]! : random() * 256),
  copies: (at, bytes, random) => {
    if (at < 10 || random() < 0.05) return 97 + random() * 26;
    // What followed the last place of the byte before.
    const place = bytes.lastIndexOf(bytes[at - 1]!, at - 2);
    return place < 0 || random() < 0.1 ? 97 + random() * 26 : bytes[place + 1]!;
  },
};

function bytesOf(kind: string, size: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(size);
  const random = randomOf(seed);
  for (let at = 0; at < size; at++) bytes[at] = KINDS[kind]!(at, bytes, random);
  return bytes;
}

/** Noise and copies whose lengths and distances have all magnitudes alike, as no real text has. */
function spreadBytes(size: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(size);
  const random = randomOf(seed);
  const magnitude = (bits: number): number => Math.floor(2 ** (random() * bits));
  for (let at = 0; at < size; ) {
    for (let end = Math.min(size, at + magnitude(9)); at < end; at++) bytes[at] = random() * 256;
    const distance = Math.min(at, magnitude(16));
    for (let end = Math.min(size, at + 4 + magnitude(9)); at < end && distance > 0; at++)
      bytes[at] = bytes[at - distance]!;
  }
  return bytes;
}

describe("what we compress, others decompress", () => {
  test("bytes of every kind and size", () => {
    const sizes = fc.oneof(fc.nat(70), fc.nat(5000), fc.nat(300_000));
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(KINDS)), sizes, fc.integer(), (kind, size, seed) => {
        check(bytesOf(kind, size, seed));
      }),
      { numRuns: 300 },
    );
  });

  test("bytes that fast-check makes up", () => {
    const parts = fc.array(fc.uint8Array({ maxLength: 20 }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(parts, fc.nat(60), (few, repeat) => {
        const many = Array.from({ length: repeat }, (_, i) => few[(i * i) % few.length]!);
        check(new Uint8Array(Buffer.concat(many)));
      }),
      { numRuns: 300 },
    );
  });

  test("lengths and distances of all magnitudes", () => {
    fc.assert(
      fc.property(fc.nat(200_000), fc.integer(), (size, seed) => {
        check(spreadBytes(size, seed));
      }),
      { numRuns: 200 },
    );
  });

  test("sizes at which headers change", () => {
    const edges = [0, 1, 31, 32, 63, 64, 255, 256, 257, 1023, 1024, 4095, 4096, 16_383, 16_384, 65_535, 65_536, 65_791];
    for (const size of [...edges, 65_792, 131_071, 131_072, 131_073, 262_144]) {
      for (const kind of ["hex", "constant", "noise", "copies"]) check(bytesOf(kind, size, size));
    }
  });

  test("every number of sequences that has a header of its own", () => {
    // A match of four bytes, then a byte that differs.
    for (const count of [1, 2, 35, 36, 71, 72, 127, 128, 500, 13_000]) {
      const bytes = Array.from({ length: count }, (_, i) => [1, 2, 3, 4, 5, 6, i & 255, i >> 8]).flat();
      check(Uint8Array.from(bytes));
    }
  });

  test("what follows a block that does not shrink", () => {
    // A match 100 bytes back in the first block, which is stored all the same; then a block that goes on with this distance.
    const bytes = bytesOf("noise", 2 << 17, 3);
    bytes.copyWithin(100, 0, 30);
    for (let at = 1 << 17; at < bytes.length; at++) bytes[at] = bytes[at - 100]!;
    check(bytes);
  });

  test("more than the window", () => {
    const bytes = bytesOf("far", 9 << 20, 5);
    bytes.copyWithin((9 << 20) - 300_000, 0, 100_000);
    check(bytes);
  });
});

test("the same bytes compress the same, whatever came before", () => {
  const bytes = bytesOf("copies", 50_000, 1);
  for (const name of ["zstd", "snappy", "lz4raw"] as const) {
    const first = compress(name, bytes);
    compress(name, bytesOf("periodic", 200_000, 2));
    expect(same(compress(name, bytes), first)).toBe(true);
  }
});

test("text is about as small as Zstandard's own level 1 makes it", () => {
  const words = ["shop", "docs", "blog", "cart", "user"];
  const random = randomOf(3);
  const lines = Array.from(
    { length: 5000 },
    () =>
      `https://example.com/${words[Math.floor(random() * 5)]}/${Math.floor(random() * 20_000)}?ref=${Math.floor(random() * 2 ** 32).toString(16)}`,
  );
  const bytes = new TextEncoder().encode(lines.join(""));
  expect(compress("zstd", bytes).length).toBeLessThan(1.08 * zstd.compress(bytes, 1).length);
});

describe("memory", () => {
  test("is used again, unless it has grown large", () => {
    const first = EncodeMemory.use((memory) => memory);
    expect(EncodeMemory.use((memory) => memory)).toBe(first);
    EncodeMemory.use((memory) => memory.take(80 << 20));
    expect(EncodeMemory.use((memory) => memory)).not.toBe(first);
  });

  test("is missed by name where there is no WebAssembly", async () => {
    vi.resetModules();
    vi.stubGlobal("WebAssembly", undefined);
    try {
      const alone = await import("../src/parquet-memory.js");
      expect(() => alone.EncodeMemory.use((memory) => memory.mark())).toThrow(
        expect.objectContaining({ name: "LimitError", code: "no_webassembly" }),
      );
    } finally {
      vi.unstubAllGlobals();
      vi.resetModules();
    }
  });

  test("has a limit that is named", () => {
    expect(() => EncodeMemory.use((memory) => memory.take(2 ** 31 - 8))).toThrow(
      expect.objectContaining({ name: "LimitError", code: "row_group_too_large" }),
    );
  });
});
