/** Protobuf messages → record batches. */

import { BatchParser } from "./batch-parser.js";
import { base64Text } from "./binary-text.js";
import { InvalidInputError } from "./errors.js";
import { bytesOfValue, kindOf } from "./js-values.js";
import type { Parser, ParserOptions } from "./parser.js";
import { MessageContext } from "./protobuf-fields.js";
import { type ProtobufField, protobufSchema } from "./protobuf-schema.js";
import { MessageValues } from "./protobuf-values.js";
import { MAX_ROW_BYTES, RowBatches, RowFault } from "./row-batches.js";

export interface ProtobufParserOptions extends Pick<ParserOptions, "batchRows" | "batchBytes" | "maxRejects"> {
  /** The fields of the message. */
  readonly fields: readonly ProtobufField[];
}

/** Bytes of a payload whose base64 is 64 KiB, for its reject. */
const MAX_RAW_BYTES = 48 * 1024;
/** Different unknown fields that are counted each by itself. */
const MAX_UNKNOWN_NAMES = 1000;
const NO_BYTES: Uint8Array = new Uint8Array(0);
/** Estimate of the memory of one value in columns. */
const VALUE_BYTES = 8;

/**
 * A parser of protobuf messages: each payload is one message, without a length before it, and becomes one row of
 * {@link protobufSchema}.
 *
 * - 64-bit integers are exact. 32-bit ones and enums take the lower 32 bits of what is written, bools are true unless 0.
 * - Packed or not, repeated fields are lists; of other fields the last value counts, of a map the last entry of each key,
 *   of a oneof the last member; embedded messages that come in pieces are merged.
 * - An enum is the name of its number, or the number's digits if it has none.
 * - Absent are: scalars as {@link ProtobufField.presence} says, messages as null, repeated fields and maps as empty.
 * - Unknown fields, groups among them, and known ones in another wire type are skipped and counted in `ignoredFields`:
 *   by number, `7.2` being field 2 of the message in field 7; after 1,000 different ones as `other`.
 * - A message that is cut off, is no protobuf, holds a string that is not UTF-8, groups in more than 100 groups, more than
 *   16 MiB or as many values, is a reject (`truncated`, `bad_protobuf`, `too_deep`, `row_too_large`, `not_bytes`) that names
 *   its row and the byte in it. With `maxRejects: 0` the first one throws. Values that do not count are not looked at.
 * - A message type without fields has no column.
 *
 * @throws SchemaError as {@link protobufSchema} does
 */
export function createProtobufParser(options: ProtobufParserOptions): Parser<readonly Uint8Array[]> {
  return new ProtobufParser(options);
}

class ProtobufParser extends BatchParser<readonly Uint8Array[]> {
  readonly #context: MessageContext;
  readonly #message: MessageValues;
  /** Unknown fields that are counted each by itself. */
  readonly #unknown: Set<string> = new Set();
  /** Messages read, whether taken or not. */
  #line = 0;

  constructor({ fields, ...limits }: ProtobufParserOptions) {
    const schema = protobufSchema(fields);
    super(new RowBatches({ ...limits, schema, unknownFields: "ignore", valueMisfits: "reject" }));
    this.#context = new MessageContext((path) => this.#ignore(path));
    this.#message = new MessageValues(fields, this.batches.columns, "", this.#context);
  }

  /** @throws InvalidInputError `bad_source` for one message in place of a list: each of its bytes would count as one */
  push(input: readonly Uint8Array[]): void {
    if (ArrayBuffer.isView(input)) {
      throw new InvalidInputError("bad_source", "a parser of messages takes a list of them: push([message])");
    }
    for (const payload of input) this.#row(payload);
  }

  end(): void {
    this.batches.flush();
  }

  #row(payload: unknown): void {
    this.#line++;
    let bytes = NO_BYTES;
    const context = this.#context;
    try {
      if (payload instanceof Uint8Array) bytes = payload;
      else if (kindOf(payload) === "binary") bytes = bytesOfValue(payload);
      else throw new RowFault("form", "not_bytes", "a message is given as a Uint8Array");
      if (bytes.length > MAX_ROW_BYTES) {
        throw new RowFault("form", "row_too_large", `a message has more than ${MAX_ROW_BYTES} bytes`);
      }
      context.reader.bytes = bytes;
      context.spans.top = 0;
      context.values = 0;
      this.#message.appendOne(0, bytes.length);
    } catch (fault) {
      if (!(fault instanceof RowFault)) throw fault;
      this.batches.refuse(fault, this.#line, base64Text(bytes.subarray(0, MAX_RAW_BYTES)));
      return;
    }
    this.batches.accept(Math.max(bytes.length, context.values * VALUE_BYTES));
  }

  #ignore(path: string): void {
    if (this.#unknown.size < MAX_UNKNOWN_NAMES) this.#unknown.add(path);
    this.batches.ignore(this.#unknown.has(path) ? path : "other");
  }
}
