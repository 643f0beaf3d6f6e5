/**
 * Protobuf messages → columns, directed by their fields. A message is scanned once, which notes where the values of each
 * field are; then the columns take them in the order of the schema. So it does not matter in what order and in how many
 * pieces the fields came, and no object is made per message or value.
 */

import { type Builder, type ListBuilder, type MapBuilder, StructBuilder } from "./builders.js";
import { ByteKeys } from "./byte-keys.js";
import { type FieldValues, type MessageContext, RepeatedField, ScalarField, seek } from "./protobuf-fields.js";
import { createScalar } from "./protobuf-scalars.js";
import type { ProtobufField, ProtobufKey, ProtobufType } from "./protobuf-schema.js";
import { NONE } from "./protobuf-spans.js";
import { WIRE } from "./protobuf-wire.js";

/** Field numbers below this have tags of one byte. */
const SMALL_NUMBERS = 16;

/** Keys from which on the memory that found the repeated ones is not kept. */
const MANY_KEYS = 1024;

/** The fields of a message type, and where a message has them. One message of a type is read at a time. */
export class MessageValues {
  readonly #fields: readonly FieldValues[];
  /** Places of fields by their numbers; those that most fields have without a look into a Map. */
  readonly #byNumber: Map<number, number>;
  readonly #bySmallNumber: Int32Array;
  /** By field, the other members of its oneof. */
  readonly #rivals: readonly (readonly number[])[];
  readonly #first: Int32Array;
  readonly #last: Int32Array;
  readonly #path: string;
  readonly #context: MessageContext;

  /** `path` is what stands before the numbers of fields; `isEntry` says that the message is an entry of a map. */
  constructor(
    fields: readonly ProtobufField[],
    builders: readonly Builder[],
    path: string,
    context: MessageContext,
    isEntry = false,
  ) {
    this.#context = context;
    this.#path = path;
    this.#fields = fields.map((field, i) =>
      createFieldValues(field, builders[i]!, `${path}${field.number}`, context, isEntry),
    );
    this.#byNumber = new Map(fields.map(({ number }, i) => [number, i]));
    this.#bySmallNumber = Int32Array.from({ length: SMALL_NUMBERS }, (_, n) => this.#byNumber.get(n) ?? NONE);
    this.#rivals = fields.map(({ oneof }, i) =>
      oneof === undefined ? [] : [...fields.keys()].filter((j) => j !== i && fields[j]!.oneof === oneof),
    );
    this.#first = new Int32Array(fields.length);
    this.#last = new Int32Array(fields.length);
  }

  /** Appends a value to each column, from a message that is the bytes `[start, end)`. */
  appendOne(start: number, end: number): void {
    const { spans } = this.#context;
    const mark = spans.top;
    this.clear();
    this.scan(start, end, true);
    this.appendFields();
    spans.top = mark;
  }

  /** The same of a message in pieces: embedded messages merge, which is to read one after the other. */
  appendMerged(first: number): void {
    const { spans } = this.#context;
    const mark = spans.top;
    this.clear();
    for (let span = first; span !== NONE; span = spans.next(span)) this.scan(spans.start(span), spans.end(span), true);
    this.appendFields();
    spans.top = mark;
  }

  clear(): void {
    // Messages have few fields: a call of `fill` takes longer than the loop.
    for (let i = 0; i < this.#first.length; i++) this.#first[i] = this.#last[i] = NONE;
  }

  /** The last span of a field, by its place. */
  last(field: number): number {
    return this.#last[field]!;
  }

  appendFields(): void {
    const fields = this.#fields;
    this.#context.count(fields.length);
    for (let i = 0; i < fields.length; i++) fields[i]!.append(this.#first[i]!, this.#last[i]!);
  }

  /** Notes where fields are. What comes in another wire type than the field's is unknown, as an unknown number is. */
  scan(start: number, end: number, counted: boolean): void {
    const { reader, spans } = this.#context;
    reader.at = start;
    reader.end = end;
    while (reader.at < end) {
      const tag = reader.tag();
      const number = tag >>> 3;
      const index = number < SMALL_NUMBERS ? this.#bySmallNumber[number]! : (this.#byNumber.get(number) ?? NONE);
      const wire = tag & 7;
      if (index === NONE || !takes(this.#fields[index]!, wire)) {
        reader.skip(tag);
        if (counted) this.#context.onUnknown(`${this.#path}${number}`);
        continue;
      }
      let from = reader.at;
      if (wire === WIRE.bytes) {
        const size = reader.length();
        from = reader.at;
        reader.at += size;
      } else reader.skip(tag);
      const last = spans.push(this.#last[index]!, from, reader.at, wire);
      this.#last[index] = last;
      if (this.#first[index] === NONE) this.#first[index] = last;
      for (const rival of this.#rivals[index]!) this.#first[rival] = this.#last[rival] = NONE;
    }
  }
}

function takes({ wire, packable }: FieldValues, written: number): boolean {
  return written === wire || (packable && written === WIRE.bytes);
}

function createFieldValues(
  { type, mapKey, repeated, presence, oneof }: ProtobufField,
  builder: Builder,
  path: string,
  context: MessageContext,
  isEntry: boolean,
): FieldValues {
  if (mapKey !== undefined) return new MapField(builder as MapBuilder, mapKey, type, path, context);
  const single = repeated === true ? (builder as ListBuilder).element : builder;
  if (typeof type === "object" && "message" in type) {
    const struct = single as StructBuilder;
    const message = new MessageValues(type.message, struct.children, `${path}.`, context);
    return repeated === true
      ? new RepeatedMessageField(builder as ListBuilder, struct, message, context)
      : new MessageField(struct, message, !isEntry, context);
  }
  const scalar = createScalar(type, single);
  if (repeated === true) return new RepeatedField(builder as ListBuilder, scalar, context);
  return new ScalarField(scalar, presence === "explicit" || oneof !== undefined, context);
}

function columnsIn(builder: Builder): number {
  if (!(builder instanceof StructBuilder)) return 1;
  return builder.children.reduce((sum, child) => sum + columnsIn(child), 0);
}

class MessageField implements FieldValues {
  readonly wire: number = WIRE.bytes;
  readonly packable = false;
  readonly #builder: StructBuilder;
  readonly #message: MessageValues;
  /** The value of a map's entry is never null: an entry without one has an empty message. */
  readonly #explicit: boolean;
  /** Columns that take a null where the message is absent. */
  readonly #columns: number;
  readonly #context: MessageContext;

  constructor(builder: StructBuilder, message: MessageValues, explicit: boolean, context: MessageContext) {
    this.#builder = builder;
    this.#message = message;
    this.#explicit = explicit;
    this.#columns = columnsIn(builder);
    this.#context = context;
  }

  append(first: number): void {
    if (first === NONE && this.#explicit) {
      this.#context.count(this.#columns);
      this.#builder.appendNull();
    } else {
      this.#message.appendMerged(first);
      this.#builder.append();
    }
  }
}

class RepeatedMessageField implements FieldValues {
  readonly wire: number = WIRE.bytes;
  readonly packable = false;
  readonly #builder: ListBuilder;
  readonly #element: StructBuilder;
  readonly #message: MessageValues;
  readonly #context: MessageContext;

  constructor(builder: ListBuilder, element: StructBuilder, message: MessageValues, context: MessageContext) {
    this.#builder = builder;
    this.#element = element;
    this.#message = message;
    this.#context = context;
  }

  append(first: number): void {
    const { spans } = this.#context;
    for (let span = first; span !== NONE; span = spans.next(span)) {
      this.#message.appendOne(spans.start(span), spans.end(span));
      this.#element.append();
    }
    this.#builder.append();
  }
}

/** A map is written as repeated messages of a key (1) and a value (2). The last entry of a key is the one that counts. */
class MapField implements FieldValues {
  readonly wire: number = WIRE.bytes;
  readonly packable = false;
  readonly #builder: MapBuilder;
  readonly #entry: MessageValues;
  readonly #context: MessageContext;
  readonly #keyType: ProtobufKey;
  /** A key as it is compared: its bytes can differ where its number does not. */
  readonly #key: Uint8Array = new Uint8Array(8);
  readonly #keyWords: Int32Array = new Int32Array(this.#key.buffer);

  constructor(
    builder: MapBuilder,
    keyType: ProtobufKey,
    valueType: ProtobufType,
    path: string,
    context: MessageContext,
  ) {
    const fields: readonly ProtobufField[] = [
      { name: "key", number: 1, type: keyType },
      { name: "value", number: 2, type: valueType },
    ];
    this.#builder = builder;
    this.#keyType = keyType;
    this.#context = context;
    this.#entry = new MessageValues(fields, [builder.key, builder.value], `${path}.`, context, true);
  }

  append(first: number, last: number): void {
    const { spans } = this.#context;
    if (first !== last) this.#dropRepeated(last);
    for (let span = first; span !== NONE; span = spans.next(span)) {
      if (spans.wire(span) !== NONE) this.#entry.appendOne(spans.start(span), spans.end(span));
    }
    this.#builder.append();
  }

  /** From the last entry to the first, drops those whose key was there already. */
  #dropRepeated(last: number): void {
    const { spans } = this.#context;
    const mark = spans.top;
    let count = 0;
    this.#context.keys.clear();
    for (let span = last; span !== NONE; span = spans.previous(span)) {
      this.#entry.clear();
      this.#entry.scan(spans.start(span), spans.end(span), false);
      if (!this.#addKey(this.#entry.last(0))) spans.drop(span);
      spans.top = mark;
      count++;
    }
    if (count > MANY_KEYS) this.#context.keys = new ByteKeys();
  }

  #addKey(span: number): boolean {
    const { reader, spans, keys } = this.#context;
    const words = this.#keyWords;
    words.fill(0);
    if (span === NONE) return keys.add(this.#key, 0, this.#keyType === "string" ? 0 : 8);
    seek(this.#context, span);
    if (this.#keyType === "string") return keys.add(reader.bytes, reader.at, reader.end);
    if (spans.wire(span) === WIRE.varint) {
      reader.varint();
      words[0] = reader.low;
      if (this.#keyType.endsWith("64")) words[1] = reader.high;
      else if (this.#keyType === "bool") words[0] = reader.low === 0 && reader.high === 0 ? 0 : 1;
    } else for (let i = reader.at; i < reader.end; i++) this.#key[i - reader.at] = reader.bytes[i]!;
    return keys.add(this.#key, 0, 8);
  }
}
