import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createBuilder, type DecimalBuilder } from "../src/builders.js";
import { NumberToken } from "../src/number-token.js";
import { utf8 } from "./text.js";

function read(text: string): NumberToken | undefined {
  const bytes = utf8(`${text},`);
  const token = new NumberToken();
  return token.read(bytes, 0, bytes.length - 1) === bytes.length - 1 ? token : undefined;
}

/** The value × 10^scale as bigint, by arithmetic of its own; undefined if it is no integer. */
function unscaled(text: string, scale: number): bigint | undefined {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)!;
  const shift = Number(exponent) - fraction.length + scale;
  let value = BigInt(whole! + fraction);
  if (shift >= 0) value *= 10n ** BigInt(shift);
  else if (value % 10n ** BigInt(-shift) !== 0n) return undefined;
  else value /= 10n ** BigInt(-shift);
  return sign === "-" ? -value : value;
}

const digits = fc.stringMatching(/^[0-9]{1,22}$/);
const numbers = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(fc.constant("0"), fc.stringMatching(/^[1-9][0-9]{0,21}$/)),
    fc.option(
      fc.oneof(
        digits,
        fc.stringMatching(/^[0-9]{0,3}0{0,8}$/).filter((s) => s !== ""),
      ),
      { nil: undefined },
    ),
    fc.option(fc.integer({ min: -30, max: 30 }), { nil: undefined }),
  )
  .map(([sign, whole, fraction, exponent]) => {
    const point = fraction === undefined ? "" : `.${fraction}`;
    return `${sign}${whole}${point}${exponent === undefined ? "" : `e${exponent}`}`;
  });

describe("number tokens", () => {
  test.each(["", "-", "01", "-01", "1.", ".5", "1.e3", "1e", "1e+", "+1", "0x10", "1_000", "Infinity", "NaN", "1 "])(
    "refuses %j",
    (text) => {
      expect(read(text)).toBeUndefined();
    },
  );

  test("the nearest float64, as Number reads it", () => {
    fc.assert(
      fc.property(numbers, (text) => {
        expect(read(text)!.toNumber()).toBe(Number(text));
      }),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = Object.is(value, -0) ? "-0" : String(value).replace("e+", "e");
        expect(read(text)!.toNumber()).toBe(value);
      }),
      { numRuns: 2000 },
    );
    expect(read("1e400")!.toNumber()).toBe(Number.POSITIVE_INFINITY);
    expect(read("1e400")!.infinite).toBe(true);
    expect(read("1e99999999999999999999")!.infinite).toBe(true);
    expect(read("1.7976931348623157e308")!.infinite).toBe(false);
    expect(read(`0.${"0".repeat(400)}1e500`)!.infinite).toBe(false);
    expect(read("1e-99999999999999999999")!.toNumber()).toBe(0);
  });

  test("64-bit integers, exactly and only in range", () => {
    const signed = (text: string): bigint | undefined => {
      const token = read(text)!;
      return token.toInt64() ? (BigInt(token.high) << 32n) | BigInt(token.low >>> 0) : undefined;
    };
    const unsigned = (text: string): bigint | undefined => {
      const token = read(text)!;
      return token.toUint64() ? BigInt.asUintN(64, (BigInt(token.high) << 32n) | BigInt(token.low >>> 0)) : undefined;
    };
    expect(signed("9223372036854775807")).toBe(9223372036854775807n);
    expect(signed("9223372036854775808")).toBeUndefined();
    expect(signed("-9223372036854775808")).toBe(-9223372036854775808n);
    expect(signed("-9223372036854775809")).toBeUndefined();
    expect(unsigned("18446744073709551615")).toBe(18446744073709551615n);
    expect(unsigned("18446744073709551616")).toBeUndefined();
    expect(unsigned("-1")).toBeUndefined();
    expect(signed("1.5e1")).toBe(15n);
    expect(signed("1.5")).toBeUndefined();
    fc.assert(
      fc.property(numbers, (text) => {
        const value = unscaled(text, 0);
        expect(signed(text)).toBe(value === undefined || BigInt.asIntN(64, value) !== value ? undefined : value);
        expect(unsigned(text)).toBe(value === undefined || BigInt.asUintN(64, value) !== value ? undefined : value);
      }),
      { numRuns: 3000 },
    );
  });

  test("decimals, exactly and only where all digits fit", () => {
    const decimal = (text: string, precision: number, scale: number): bigint | undefined => {
      const builder = createBuilder({ id: 1, name: "d", type: { kind: "decimal", precision, scale }, nullable: true });
      if (!read(text)!.appendDecimal(builder as DecimalBuilder, precision, scale)) return undefined;
      const bytes = builder.finish().values as Uint8Array;
      return BigInt.asIntN(
        128,
        bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n),
      );
    };
    expect(decimal("99999999999999999999999999999999999999", 38, 0)).toBe(10n ** 38n - 1n);
    expect(decimal("-99999999999999999999999999999999999999", 38, 0)).toBe(-(10n ** 38n) + 1n);
    expect(decimal("100000000000000000000000000000000000000", 38, 0)).toBeUndefined();
    expect(decimal("12.30", 4, 1)).toBe(123n);
    expect(decimal("12.34", 4, 1)).toBeUndefined();
    expect(decimal("-0.0", 4, 1)).toBe(0n);
    fc.assert(
      fc.property(numbers, fc.integer({ min: 1, max: 38 }), fc.nat(38), (text, precision, rawScale) => {
        const scale = Math.min(precision, rawScale);
        const value = unscaled(text, scale);
        const fits = value !== undefined && (value < 0n ? -value : value) < 10n ** BigInt(precision);
        expect(decimal(text, precision, scale)).toBe(fits ? value : undefined);
      }),
      { numRuns: 3000 },
    );
  });

  test("bits and digits that a value needs", () => {
    expect(read("9007199254740992")!.fitsBits(53)).toBe(true);
    expect(read("9007199254740993")!.fitsBits(53)).toBe(false);
    expect(read("16777217")!.fitsBits(24)).toBe(false);
    expect(read("33554432")!.fitsBits(24)).toBe(true);
    expect(read("340282366920938463463374607431768211456")!.fitsBits(53)).toBe(false); // 2^128 has 39 digits
    expect(read("12.340")).toMatchObject({ integerDigits: 2, valueScale: 2 });
    expect(read("0.00120e1")).toMatchObject({ integerDigits: 0, valueScale: 3 });
    expect(read("1.50e-7")).toMatchObject({ integerDigits: 0, valueScale: 8 });
    expect(read("100.0")).toMatchObject({ integerDigits: 3, valueScale: 0 });
    fc.assert(
      fc.property(numbers, (text) => {
        const token = read(text)!;
        const scale = token.valueScale;
        expect(unscaled(text, scale)).toBeDefined();
        if (scale > 0) expect(unscaled(text, scale - 1)).toBeUndefined();
        const value = unscaled(text, 0);
        if (token.integer && value !== undefined && token.digits <= 38) {
          expect(token.fitsBits(53)).toBe(BigInt(Number(value)) === value);
          expect(token.toBigInt()).toBe(value);
        }
      }),
      { numRuns: 3000 },
    );
  });
});
