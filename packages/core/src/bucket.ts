/** The bucket of a value, as Iceberg's `bucket` transform finds it (Iceberg spec, "Bucket Transform Details"). */

import { murmur3, murmur3Long } from "./murmur3.js";
import type { DataType } from "./schema.js";
import type { BoundValue } from "./statistics.js";

/** `(hash & Integer.MAX_VALUE) % N` */
export function bucketOf(hash: number, buckets: number): number {
  return (hash & 0x7fffffff) % buckets;
}

const MINIMAL = new Uint8Array(16);

/**
 * Decimals hash as the shortest big-endian two's complement form of their unscaled value (Iceberg spec, appendix B).
 * @param bytes 16, little-endian, from `start` on
 */
export function hashDecimal(bytes: Uint8Array, start: number): number {
  const sign = bytes[start + 15]! & 0x80 ? 0xff : 0;
  let top = 15;
  while (top > 0 && bytes[start + top] === sign && (bytes[start + top - 1]! & 0x80) === (sign & 0x80)) top--;
  for (let i = 0; i <= top; i++) MINIMAL[i] = bytes[start + top - i]!;
  return murmur3(MINIMAL, 0, top + 1);
}

/** The bucket of one value in the form of a bound; undefined for types, or values of them, that have no bucket. */
export function bucketOfBound(type: DataType, value: BoundValue, buckets: number): number | undefined {
  const hash = hashBound(type, value);
  return hash === undefined ? undefined : bucketOf(hash, buckets);
}

function hashBound(type: DataType, value: BoundValue): number | undefined {
  switch (type.kind) {
    case "int8":
    case "int16":
    case "int32":
    case "int64":
    case "uint8":
    case "uint16":
    case "uint32":
    case "date":
    case "time":
    case "timestamp":
    case "timestamptz":
      if (typeof value !== "bigint") return undefined;
      return murmur3Long(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
    // Published as decimal(20,0), and hashed as one.
    case "uint64":
    case "decimal": {
      if (typeof value !== "bigint") return undefined;
      const bytes = new Uint8Array(16);
      const view = new DataView(bytes.buffer);
      view.setBigInt64(0, BigInt.asIntN(64, value), true);
      view.setBigInt64(8, BigInt.asIntN(64, value >> 64n), true);
      return hashDecimal(bytes, 0);
    }
    case "string":
    case "binary":
    case "fixed":
    case "uuid":
      return value instanceof Uint8Array ? murmur3(value, 0, value.length) : undefined;
    default:
      return undefined;
  }
}
