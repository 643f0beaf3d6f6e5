/** Bytes as text. */

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Lower-case hex of the bytes `[start, end)`. */
export function hexText(bytes: Uint8Array, start: number, end: number): string {
  let out = "";
  for (let i = start; i < end; i++) out += HEX[bytes[i]!]!;
  return out;
}

/** `f79c3e09-677c-4bbd-a479-3f349cb785e7` from 16 bytes in that order. */
export function uuidText(bytes: Uint8Array, start: number): string {
  const part = (from: number, to: number): string => hexText(bytes, start + from, start + to);
  return `${part(0, 4)}-${part(4, 6)}-${part(6, 8)}-${part(8, 10)}-${part(10, 16)}`;
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Base64 with padding (RFC 4648, section 4). */
export function base64Text(bytes: Uint8Array): string {
  let out = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const bits = (bytes[i]! << 16) | ((left > 1 ? bytes[i + 1]! : 0) << 8) | (left > 2 ? bytes[i + 2]! : 0);
    out += BASE64[bits >> 18]! + BASE64[(bits >> 12) & 63]!;
    out += left > 1 ? BASE64[(bits >> 6) & 63]! : "=";
    out += left > 2 ? BASE64[bits & 63]! : "=";
  }
  return out;
}
