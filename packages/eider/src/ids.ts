/** UUIDv7 (RFC 9562, section 5.7): 48 bits of milliseconds, then random bits; ids made later sort later. */
export function uuidv7(now: number, random: (size: number) => Uint8Array): string {
  const bytes = Uint8Array.from(random(16));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, Math.floor(now / 0x10000));
  view.setUint16(4, now % 0x10000);
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Buffer.from(bytes).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
