/**
 * Sets of columns, by field id, as short names: runs of ids, each as the gap before it and its length, in LEB128 and
 * base64url. What is in a name needs no file to be remembered.
 */

export function columnSetName(ids: Iterable<number>): string {
  const bytes: number[] = [];
  const sorted = [...new Set(ids)].sort((a, b) => a - b);
  let end = 0;
  for (let i = 0; i < sorted.length; ) {
    const first = sorted[i]!;
    let length = 1;
    while (sorted[i + length] === first + length) length++;
    putVarint(bytes, first - end);
    putVarint(bytes, length);
    end = first + length;
    i += length;
  }
  return Buffer.from(bytes).toString("base64url");
}

/** The inverse of {@link columnSetName}; undefined for what is no such name. */
export function parseColumnSet(name: string): Set<number> | undefined {
  const ids = new Set<number>();
  const numbers: number[] = [];
  let [value, scale] = [0, 1];
  for (const byte of Buffer.from(name, "base64url")) {
    value += (byte & 0x7f) * scale;
    scale *= 0x80;
    if (byte >= 0x80) continue;
    numbers.push(value);
    [value, scale] = [0, 1];
  }
  let end = 0;
  for (let i = 0; i + 1 < numbers.length; i += 2) {
    const first = end + numbers[i]!;
    end = first + numbers[i + 1]!;
    for (let id = first; id < end; id++) ids.add(id);
  }
  // Whoever reads too many columns out of a name would not find them in the file.
  return columnSetName(ids) === name ? ids : undefined;
}

function putVarint(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
}
