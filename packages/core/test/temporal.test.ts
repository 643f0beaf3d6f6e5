import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TemporalReader } from "../src/temporal.js";
import { utf8 } from "./text.js";

const reader = new TemporalReader();

function micros(fits: boolean): bigint | undefined {
  return fits ? (BigInt(reader.high) << 32n) | BigInt(reader.low >>> 0) : undefined;
}

function instant(text: string): bigint | undefined {
  const bytes = utf8(`"${text}"`);
  return micros(reader.instant(bytes, 1, bytes.length - 1));
}

function timestamp(text: string): bigint | undefined {
  const bytes = utf8(text);
  return micros(reader.timestamp(bytes, 0, bytes.length));
}

function time(text: string): bigint | undefined {
  const bytes = utf8(text);
  return micros(reader.time(bytes, 0, bytes.length));
}

function date(text: string): number | undefined {
  const bytes = utf8(text);
  return reader.date(bytes, 0, bytes.length) ? reader.days : undefined;
}

describe("temporal text", () => {
  test("a date of zeros is none, also as the first that a reader sees", () => {
    for (const text of ["0000-00-00", "0000-00-01", "0000-01-00", "0000-00-0x"]) {
      const bytes = utf8(text);
      expect(new TemporalReader().date(bytes, 0, bytes.length)).toBe(false);
    }
  });

  test("offsets, half hours too", () => {
    const utc = 1_927_838_106_000_000n; // 2031-02-02T22:35:06Z, `date -u -d … +%s`
    expect(instant("2031-02-02T22:35:06Z")).toBe(utc);
    expect(instant("2031-02-03T04:05:06+05:30")).toBe(utc);
    expect(instant("2031-02-03T04:05:06-03:30")).toBe(utc + 9n * 3_600_000_000n);
    expect(instant("2031-02-02T22:35:06-00:00")).toBe(utc);
    expect(instant("2031-02-02T22:35:06.000001Z")).toBe(utc + 1n);
    expect(instant("2031-02-02T22:35:06.123456000Z")).toBe(utc + 123_456n);
  });

  test.each([
    "2031-02-03T04:05:06",
    "2031-02-03",
    "2031-02-03 04:05:06Z",
    "2031-02-03t04:05:06z",
    "2031-02-03T24:00:00Z",
    "2031-02-03T23:59:60Z",
    "2031-02-03T04:60:06Z",
    "2031-02-29T04:05:06Z",
    "2100-02-29T04:05:06Z",
    "2031-13-01T04:05:06Z",
    "2031-00-01T04:05:06Z",
    "2031-04-31T04:05:06Z",
    "2031-02-00T04:05:06Z",
    "0000-02-03T04:05:06Z",
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    "2031-02-03T04:05:06+0530",
    "2031-02-03T04:05:06+05",
    "2031-02-03T04:05:06+24:00",
    "2031-02-03T04:05:06+05:60",
    "2031-02-03T04:05:06.Z",
    "2031-02-03T04:05:06.1234567Z",
    "2031-02-03T04:05:06.0000000000Z",
    "2031-02-03T04:05Z",
    "2031-2-3T04:05:06Z",
    "+2031-02-03T04:05:06Z",
    "2031-02-03T04:05:06Z ",
    "2031-02-03T04:05:06 Z",
    "2031/02/03T04:05:06Z",
    "2031-02-03T04:05:06,5Z",
    "२०३१-02-03T04:05:06Z",
  ])("no instant: %s", (text) => {
    expect(instant(text)).toBeUndefined();
  });

  test("timestamps have no zone, times and dates stand alone", () => {
    expect(timestamp("1969-12-31T23:59:59.999999")).toBe(-1n);
    expect(timestamp("1970-01-01 00:00:01")).toBe(1_000_000n);
    expect(timestamp("1970-01-01T00:00:01Z")).toBeUndefined();
    expect(timestamp("1970-01-01")).toBeUndefined();
    expect(time("23:59:59.5")).toBe(86_399_500_000n);
    expect(time("24:00:00")).toBeUndefined();
    expect(time("12:00")).toBeUndefined();
    expect(date("0001-01-01")).toBe(-719_162);
    expect(date("9999-12-31")).toBe(2_932_896);
    expect(date("2000-02-29")).toBe(11_016);
    expect(date("1900-02-29")).toBeUndefined();
    expect(date("2031-1-01")).toBeUndefined();
  });

  test("agrees with Date", () => {
    const first = new Date("0001-01-01T00:00:00Z");
    const last = new Date("9999-12-31T23:59:59.999Z");
    fc.assert(
      fc.property(
        fc.date({ min: first, max: last, noInvalidDate: true }),
        fc.integer({ min: -1439, max: 1439 }),
        (at, zone) => {
          const expected = BigInt(at.getTime()) * 1000n;
          expect(instant(at.toISOString())).toBe(expected);
          expect(micros(reader.milliseconds(at.getTime()))).toBe(expected);
          const local = new Date(at.getTime() + zone * 60_000);
          if (local < first || local > last) return;
          const pad = (n: number): string => String(n).padStart(2, "0");
          const size = Math.abs(zone);
          const offset = `${zone < 0 ? "-" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
          expect(instant(local.toISOString().replace("Z", offset))).toBe(expected);
          expect(date(at.toISOString().slice(0, 10))).toBe(Math.floor(at.getTime() / 86_400_000));
        },
      ),
      { numRuns: 2000 },
    );
    expect(reader.milliseconds(Number.NaN)).toBe(false);
    expect(reader.milliseconds(8.64e15)).toBe(false);
  });
});
