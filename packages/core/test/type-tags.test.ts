import { describe, expect, it } from "vitest";
import { formatType, formatTypeTag, parseType, parseTypeTag } from "../src/index.js";

const TAGS: readonly (readonly [tag: string, type: string, back: string])[] = [
  ["string", "string", "string"],
  ["large_string", "string", "string"],
  ["bytes", "binary", "bytes"],
  ["large_bytes", "binary", "bytes"],
  ["bool", "bool", "bool"],
  ["int8", "int8", "int8"],
  ["int16", "int16", "int16"],
  ["int32", "int32", "int32"],
  ["int64", "int64", "int64"],
  ["uint8", "uint8", "uint8"],
  ["uint16", "uint16", "uint16"],
  ["uint32", "uint32", "uint32"],
  ["uint64", "uint64", "uint64"],
  ["float16", "float32", "float32"],
  ["float32", "float32", "float32"],
  ["float64", "float64", "float64"],
  ["date32", "date", "date32"],
  ["date64", "date", "date32"],
  ["fixed_bytes[16]", "fixed(16)", "fixed_bytes[16]"],
  ["decimal[38,9]", "decimal(38,9)", "decimal[38,9]"],
  ["decimal[10, 2]", "decimal(10,2)", "decimal[10,2]"],
  ["time[s]", "time", "time[us]"],
  ["time[ns]", "time", "time[us]"],
  ["time[microsecond]", "time", "time[us]"],
  ["timestamp[ms]", "timestamp", "timestamp[us]"],
  ["timestamp[us, UTC]", "timestamptz", "timestamp[us, UTC]"],
  ["timestamp[ns,America/Argentina/Buenos_Aires]", "timestamptz", "timestamp[us, UTC]"],
  ["timestamp[second, +05:30]", "timestamptz", "timestamp[us, UTC]"],
  ["timestamp[s, Etc/GMT-14]", "timestamptz", "timestamp[us, UTC]"],
];

describe("type tags", () => {
  it.each(TAGS)("%s is %s, and back %s", (tag, type, back) => {
    expect(formatType(parseTypeTag(tag))).toBe(type);
    expect(formatTypeTag(parseTypeTag(tag))).toBe(back);
    expect(formatType(parseTypeTag(back))).toBe(type);
  });

  it.each([
    "stringy",
    "string ",
    " string",
    "String",
    "xstring",
    "string\n",
    "int128",
    "",
    "decimal",
    "decimal[39,0]",
    "decimal[4,5]",
    "decimal[0,0]",
    "decimal[10,2]x",
    "decimal[10,2",
    "fixed_bytes[0]",
    "fixed_bytes[-1]",
    "fixed_bytes[]",
    "time",
    "time[h]",
    "time[us, UTC]",
    "timestamp[us,]",
    "timestamp[us, ]",
    "timestamp[us, a b]",
    "timestamp[us, UTC]]",
    "uuid",
    "json",
    "list<string>",
    "constructor",
    "__proto__",
  ])("%j is no tag", (tag) => {
    expect(() => parseTypeTag(tag)).toThrow(expect.objectContaining({ name: "SchemaError", code: "bad_type" }));
  });

  it.each(["uuid", "json", "unknown", "list<int8>", "map<string,int8>", "struct<a: int8>"])("%s has none", (type) => {
    expect(() => formatTypeTag(parseType(type))).toThrow(
      expect.objectContaining({ name: "SchemaError", code: "unsupported_type", subject: type }),
    );
  });
});
