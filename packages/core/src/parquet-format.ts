/** Numbers of the Parquet format, from `parquet.thrift` of apache/parquet-format. */

export const PhysicalType = {
  boolean: 0,
  int32: 1,
  int64: 2,
  int96: 3,
  float: 4,
  double: 5,
  byteArray: 6,
  fixedLenByteArray: 7,
} as const;
export type PhysicalType = (typeof PhysicalType)[keyof typeof PhysicalType];

export const Repetition = { required: 0, optional: 1, repeated: 2 } as const;
export type Repetition = (typeof Repetition)[keyof typeof Repetition];

export const ConvertedType = {
  utf8: 0,
  map: 1,
  mapKeyValue: 2,
  list: 3,
  enum: 4,
  decimal: 5,
  date: 6,
  timeMillis: 7,
  timeMicros: 8,
  timestampMillis: 9,
  timestampMicros: 10,
  uint8: 11,
  uint16: 12,
  uint32: 13,
  uint64: 14,
  int8: 15,
  int16: 16,
  int32: 17,
  int64: 18,
  json: 19,
} as const;

/** Field ids of the `LogicalType` union. */
export const LogicalType = {
  string: 1,
  map: 2,
  list: 3,
  enum: 4,
  decimal: 5,
  date: 6,
  time: 7,
  timestamp: 8,
  integer: 10,
  unknown: 11,
  json: 12,
  uuid: 14,
} as const;

/** Field ids of the `TimeUnit` union. */
export const TimeUnit = { millis: 1, micros: 2, nanos: 3 } as const;

export const Encoding = {
  plain: 0,
  rle: 3,
  deltaBinaryPacked: 5,
  deltaLengthByteArray: 6,
  deltaByteArray: 7,
  rleDictionary: 8,
  byteStreamSplit: 9,
} as const;
export type Encoding = (typeof Encoding)[keyof typeof Encoding];

export const PageType = { data: 0, dictionary: 2 } as const;
export type PageType = (typeof PageType)[keyof typeof PageType];

export const BoundaryOrder = { unordered: 0, ascending: 1, descending: 2 } as const;

/** `PAR1`, at both ends of a file. */
export const MAGIC: Uint8Array = Uint8Array.of(0x50, 0x41, 0x52, 0x31);
