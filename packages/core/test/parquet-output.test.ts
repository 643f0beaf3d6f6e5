import fc from "fast-check";
import { expect, test } from "vitest";
import { joinParts, OutputBytes } from "../src/parquet-output.js";

test("parts hold what was appended, each byte once and in order, in few arrays", () => {
  const pieces = fc.array(fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 20 }), { maxLength: 20 });
  fc.assert(
    fc.property(pieces, (chunks) => {
      const output = new OutputBytes();
      const expected: number[] = [];
      const parts = chunks.flatMap((sizes) => {
        const begin = expected.length;
        for (const size of sizes) {
          const bytes = Uint8Array.from({ length: size }, (_, i) => (expected.length + i) % 251);
          for (const byte of bytes) expected.push(byte);
          output.append(bytes);
          bytes.fill(0);
        }
        const taken = output.take();
        expect(taken.reduce((sum, part) => sum + part.length, 0)).toBe(expected.length - begin);
        return taken;
      });
      const joined = joinParts(parts);
      expect(Buffer.concat(joined).equals(Uint8Array.from(expected))).toBe(true);
      expect(joined.length).toBeLessThanOrEqual(new Set(parts.map(({ buffer }) => buffer)).size);
      // Sizes double from 4 KiB on: at most 9 arrays for 1 MiB, one more for each MiB beyond.
      expect(joined.length).toBeLessThanOrEqual(9 + expected.length / 2 ** 20);
    }),
    { numRuns: 60 },
  );
});
