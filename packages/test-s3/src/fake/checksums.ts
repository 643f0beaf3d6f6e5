/** The checksums that S3 knows, and the headers that carry them. */

import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";

type Checksum = (bytes: Uint8Array) => Buffer;

/** By the name that follows `x-amz-checksum-`. */
export const CHECKSUMS: Readonly<Record<string, Checksum>> = {
  crc32: (bytes) => bigEndian(crc32(bytes)),
  crc32c: (bytes) => bigEndian(crc32c(bytes)),
  sha1: (bytes) => createHash("sha1").update(bytes).digest(),
  sha256: (bytes) => createHash("sha256").update(bytes).digest(),
};

/** Checksums among headers or trailers, base64 by algorithm. `x-amz-checksum-mode` and the like are something else. */
export function checksumsOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const algorithm = name.replace(/^x-amz-checksum-/, "");
    if (algorithm !== name && !["algorithm", "mode", "type"].includes(algorithm)) found[algorithm] = value;
  }
  return found;
}

/** Castagnoli, reflected: 0x1edc6f41 from the other end. */
const CASTAGNOLI = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0x82f63b78 : 0);
  return value;
});

function crc32c(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (value >>> 8) ^ CASTAGNOLI[(value ^ byte) & 0xff]!;
  return ~value >>> 0;
}

function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
