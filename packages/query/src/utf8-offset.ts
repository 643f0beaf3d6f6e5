/** Characters (UTF-16 units) before a byte offset of a text's UTF-8; undefined outside the text. */
export function charOffset(text: string, bytes: number): number | undefined {
  if (bytes < 0) return undefined;
  const encoded = Buffer.from(text);
  return bytes > encoded.length ? undefined : encoded.toString("utf8", 0, bytes).length;
}
