/** Single and repeated scalars → columns, and what all fields of messages have in common. */

import type { ListBuilder } from "./builders.js";
import { ByteKeys } from "./byte-keys.js";
import type { Scalar } from "./protobuf-scalars.js";
import { NONE, Spans } from "./protobuf-spans.js";
import { WIRE, WireReader } from "./protobuf-wire.js";
import { MAX_ROW_BYTES, RowFault } from "./row-batches.js";

/** Values that one message may put into columns: two bytes suffice for an embedded message of any number of them. */
const MAX_VALUES = MAX_ROW_BYTES;

/** What the values of one parser share. */
export class MessageContext {
  readonly reader: WireReader = new WireReader();
  readonly spans: Spans = new Spans();
  readonly onUnknown: (path: string) => void;
  keys: ByteKeys = new ByteKeys();
  /** Values appended for the message being read. */
  values = 0;

  constructor(onUnknown: (path: string) => void) {
    this.onUnknown = onUnknown;
  }

  count(values: number): void {
    this.values += values;
    if (this.values > MAX_VALUES) {
      throw new RowFault("form", "row_too_large", `the message has more than ${MAX_VALUES} values`);
    }
  }
}

/** Appends one value to a column, from the chain of spans that a message has for the field. */
export interface FieldValues {
  /** The wire type that the field is written in. */
  readonly wire: number;
  /** Numbers may also come packed. */
  readonly packable: boolean;
  append(first: number, last: number): void;
}

/** Puts the reader on a span. */
export function seek({ reader, spans }: MessageContext, span: number): void {
  reader.at = spans.start(span);
  reader.end = spans.end(span);
}

export class ScalarField implements FieldValues {
  readonly wire: number;
  readonly packable = false;
  readonly #scalar: Scalar;
  readonly #explicit: boolean;
  readonly #context: MessageContext;

  constructor(scalar: Scalar, explicit: boolean, context: MessageContext) {
    this.wire = scalar.wire;
    this.#scalar = scalar;
    this.#explicit = explicit;
    this.#context = context;
  }

  append(_first: number, last: number): void {
    if (last !== NONE) {
      seek(this.#context, last);
      this.#scalar.read(this.#context.reader);
    } else if (this.#explicit) this.#scalar.builder.appendNull();
    else this.#scalar.appendDefault();
  }
}

export class RepeatedField implements FieldValues {
  readonly wire: number;
  readonly packable: boolean;
  readonly #builder: ListBuilder;
  readonly #scalar: Scalar;
  readonly #context: MessageContext;

  constructor(builder: ListBuilder, scalar: Scalar, context: MessageContext) {
    this.wire = scalar.wire;
    this.packable = scalar.wire !== WIRE.bytes;
    this.#builder = builder;
    this.#scalar = scalar;
    this.#context = context;
  }

  append(first: number): void {
    const { reader, spans } = this.#context;
    const before = this.#scalar.builder.length;
    for (let span = first; span !== NONE; span = spans.next(span)) {
      seek(this.#context, span);
      if (this.packable && spans.wire(span) === WIRE.bytes) while (reader.at < reader.end) this.#scalar.read(reader);
      else this.#scalar.read(reader);
    }
    this.#context.count(this.#scalar.builder.length - before);
    this.#builder.append();
  }
}
