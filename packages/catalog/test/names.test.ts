import { InvalidInputError } from "@eider/core";
import { describe, expect, it } from "vitest";
import { checkBatchId, parseTableName } from "../src/names.js";

const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof InvalidInputError) return error.code;
    throw error;
  }
  return "taken";
};

describe("table names", () => {
  it.each([
    ["events", { name: "events" }],
    ["ns.events", { namespace: "ns", name: "events" }],
    ["Données.ventes", { namespace: "Données", name: "ventes" }],
    // One part, whatever it holds: D78.
    ["x-y.z", { name: "x-y.z" }],
    ['a"; DROP TABLE b; --', { name: 'a"; DROP TABLE b; --' }],
    ["it's", { name: "it's" }],
    ["a.b.c", { name: "a.b.c" }],
    ["a.", { name: "a." }],
    [".a", { name: ".a" }],
    ["../t", { name: "../t" }],
    ["1.5", { name: "1.5" }],
    ["__proto__", { name: "__proto__" }],
    ["eider", { name: "eider" }],
    ["mainly.events", { namespace: "mainly", name: "events" }],
  ])("reads %j", (text, parts) => {
    expect(parseTableName(text)).toEqual(parts);
  });

  it.each([
    [""],
    ["a\0b"],
    ["a\nb"],
    ["a\u007fb"],
    ["a\ud800b"],
    ["é".repeat(128)], // 256 bytes
    ["eider.rejects"],
    ["EIDER.x"],
    ["eider.x-y"],
    ["main.events"],
    ["memory.events"],
    ["Information_Schema.tables"],
  ])("refuses %j", (text) => {
    expect(codeOf(() => parseTableName(text))).toBe("bad_name");
  });

  it("takes 255 bytes", () => {
    expect(parseTableName(`a${"é".repeat(127)}`)).toEqual({ name: `a${"é".repeat(127)}` });
  });
});

describe("batch ids", () => {
  it.each([["__proto__"], ["a/b"], [" "], ["\n"], ["a\0b"], ["😀"], ["é".repeat(512)]])("takes %j", (id) => {
    expect(codeOf(() => checkBatchId(id))).toBe("taken");
  });

  it.each([[""], ["\udc00"], [`${"é".repeat(512)}x`]])("refuses %j", (id) => {
    expect(codeOf(() => checkBatchId(id))).toBe("bad_batch_id");
  });
});
