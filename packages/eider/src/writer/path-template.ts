/**
 * The keys of a writer's objects. A template is evaluated once for each new file of a partition:
 *
 * | placeholder | becomes |
 * |---|---|
 * | `{partition}` | `<column>[_<transform>]=<value>/…`, as in tables; a whole part between slashes |
 * | `{expression}` | the value of one of the partition expressions: `{tenant}`, `{day(ts)}`, `{bucket(16, id)}` |
 * | `{id}` | the writer's id |
 * | `{n}` | number of the file in its partition, from `00000` |
 *
 * Values are percent-encoded, long ones cut and hashed, so that no value leaves its place (D77). A template that could
 * give two partitions one key is refused when the writer is opened: all partition expressions have to be in it, and
 * between two of them a character that no value has.
 */

import {
  InvalidInputError,
  type PartitionSpec,
  type PartitionValue,
  parsePartitionBy,
  partitionPath,
  partitionValueText,
  pathName,
  pathText,
  type Schema,
  SchemaError,
} from "@eider/core";
import { assertSafeKey } from "@eider/storage";

const DEFAULT_NAME = "{id}-{n}.parquet";
/** Digits of `{n}`, so that listings are in order up to 100,000 files of a partition. */
const NUMBER_DIGITS = 5;
/** What encoded values consist of, see `partitionValueText`. */
const VALUE_CHARACTERS = /^[A-Za-z0-9_.%~-]*$/;
const DIGITS = /^[0-9]*$/;

type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "value"; readonly spec: PartitionSpec; readonly index: number }
  | { readonly kind: "partition" | "number" };

export class PathTemplate {
  /** By segment. */
  readonly #segments: readonly (readonly Part[])[];
  readonly #specs: readonly PartitionSpec[];

  /** @throws InvalidInputError `bad_path`, naming what to change */
  constructor(template: string | undefined, specs: readonly PartitionSpec[], schema: Schema, id: string) {
    const text = template ?? (specs.length > 0 ? `{partition}/${DEFAULT_NAME}` : DEFAULT_NAME);
    this.#specs = specs;
    this.#segments = text.split("/").map((segment) => parseSegment(segment, text, specs, schema, pathText(id)));
    this.#checkDistinct(text);
    // Whatever the values are, what surrounds them is the same.
    try {
      assertSafeKey(this.#render((spec) => ("field" in spec ? "x" : "x=x"), 0));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw badPath(text, `it gives keys that no store takes. ${reason}`, cause);
    }
  }

  /** @throws InvalidInputError `bad_key` for a key that is too long */
  key(values: readonly PartitionValue[], number: number): string {
    const { length } = this.#specs;
    const key = this.#render(
      (part) =>
        "field" in part
          ? partitionValueText(part, values[this.#specs.indexOf(part)]!, length)
          : partitionPath(this.#specs, values),
      number,
    );
    assertSafeKey(key);
    return key;
  }

  #render(value: (part: PartitionSpec | { readonly kind: "partition" }) => string, number: number): string {
    const render = (part: Part): string => {
      switch (part.kind) {
        case "text":
          return part.text;
        case "number":
          return String(number).padStart(NUMBER_DIGITS, "0");
        case "value":
          return value(part.spec);
        case "partition":
          return value({ kind: "partition" });
      }
    };
    return this.#segments
      .map((segment) => {
        const text = segment.map(render).join("");
        return segment[0]?.kind === "partition" ? text : pathName(text);
      })
      .join("/");
  }

  #checkDistinct(template: string): void {
    const parts = this.#segments.flat();
    const counted = parts.filter(({ kind }) => kind === "number").length;
    if (counted !== 1) {
      throw badPath(template, `it has to hold {n} once, the number of the file in its partition, not ${counted} times`);
    }
    if (!parts.some(({ kind }) => kind === "partition")) {
      const named = new Set(parts.map((part) => (part.kind === "value" ? part.spec : undefined)));
      const missing = this.#specs.find((spec) => !named.has(spec));
      if (missing) {
        throw badPath(
          template,
          `partitions that differ in ${missing.text} would share a path: put {${missing.text}} in it`,
        );
      }
    }
    for (const segment of this.#segments) checkSegment(segment, template);
  }
}

function parseSegment(
  segment: string,
  template: string,
  specs: readonly PartitionSpec[],
  schema: Schema,
  id: string,
): Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const match of segment.matchAll(/\{([^{}]*)\}/g)) {
    if (match.index > at) parts.push({ kind: "text", text: segment.slice(at, match.index) });
    at = match.index + match[0].length;
    const name = match[1]!.trim();
    if (name === "id") parts.push({ kind: "text", text: id });
    else if (name === "n") parts.push({ kind: "number" });
    else if (name === "partition") parts.push({ kind: "partition" });
    else parts.push(valuePart(name, template, specs, schema));
  }
  if (at < segment.length) parts.push({ kind: "text", text: segment.slice(at) });
  const stray = parts.find((part) => part.kind === "text" && /[{}]/.test(part.text));
  if (stray) throw badPath(template, "a brace has no partner");
  if (parts.some(({ kind }) => kind === "partition")) {
    if (parts.length > 1) throw badPath(template, "{partition} is a part of its own, between slashes");
    if (specs.length === 0) throw badPath(template, "there is no partitionBy: leave {partition} out");
  }
  return parts;
}

function valuePart(name: string, template: string, specs: readonly PartitionSpec[], schema: Schema): Part {
  let text: string | undefined;
  try {
    ({ text } = parsePartitionBy(name, schema));
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
  }
  const index = specs.findIndex((spec) => spec.text === text);
  if (index >= 0) return { kind: "value", spec: specs[index]!, index };
  const known = ["partition", ...specs.map((spec) => spec.text), "id", "n"].map((each) => `{${each}}`).join(", ");
  throw badPath(template, `{${name}} is not known; known are ${known}`);
}

/** Whether two values in a segment could be told from each other in what they give. */
function checkSegment(segment: readonly Part[], template: string): void {
  const values = segment.filter(({ kind }) => kind === "value").length;
  let between: string | undefined;
  for (const part of segment) {
    if (part.kind === "text") {
      if (between !== undefined) between += part.text;
      continue;
    }
    // With one value, digits end at whatever is no digit. With more, each could hold what stands between them.
    const blurred = values > 1 ? VALUE_CHARACTERS : DIGITS;
    if (between !== undefined && values > 0 && blurred.test(between)) {
      const advice = values > 1 ? 'a slash, or a character such as "=" or ","' : '"-"';
      throw badPath(
        template,
        `its values run into each other, and two partitions could share a path: put ${advice} between`,
      );
    }
    between = "";
  }
}

function badPath(template: string, reason: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError("bad_path", `the path ${JSON.stringify(template)} cannot be used: ${reason}`, {
    subject: template,
    cause,
  });
}
