import { InvalidInputError } from "@eider/core";

/** UTF-8 bytes in a key: the limit of S3. */
const MAX_KEY_BYTES = 1024;
/** UTF-8 bytes between two slashes: the limit of ext4, APFS and NTFS names. */
const MAX_SEGMENT_BYTES = 255;
/** UTF-8 needs at most this many bytes for one UTF-16 code unit, so short text need not be encoded to be measured. */
const MAX_BYTES_PER_UNIT = 3;

const SURROGATE = /\p{Cs}/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;
/** What Windows names may not hold; `FileStore` maps it there to U+F000 + code, as Cygwin, WSL and SMB clients do. */
const WINDOWS_FORBIDDEN = /[<>:"|?*]/g;
const WINDOWS_MAPPED = /[\uf022\uf02a\uf03a\uf03c\uf03e\uf03f\uf07c]/g;
/**
 * https://learn.microsoft.com/windows/win32/fileio/naming-a-file: reserved with any extension, in any case; spaces before
 * the dot are dropped.
 */
const WINDOWS_DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\.|$)/i;
/** Where `FileStore` writes before an object becomes visible. No store has a key there, at any depth, in any case. */
const TEMPORARY = /(?:^|\/)_eider\/tmp(?:\/|$)/i;

/** The folder of unfinished files, relative to a root. */
export const TEMPORARY_FOLDER = "_eider/tmp";

const encoder = new TextEncoder();

function exceeds(text: string, bytes: number): boolean {
  return text.length * MAX_BYTES_PER_UNIT > bytes && encoder.encode(text).length > bytes;
}

function segmentProblem(segment: string): string | undefined {
  if (segment === "") return "it starts or ends with '/' or has '//'";
  if (segment === "." || segment === "..") return "it has a '.' or '..' segment";
  if (segment.endsWith(".") || segment.endsWith(" ")) return "a segment ends with a dot or a space";
  if (WINDOWS_DEVICE.test(segment)) return "a segment is a device name of Windows (con, nul, com1, …)";
  if (exceeds(segment, MAX_SEGMENT_BYTES)) return `a segment is longer than ${MAX_SEGMENT_BYTES} bytes`;
  return undefined;
}

/**
 * Why `key` cannot be a key, or undefined when it can. One rule for every store on every system, also for names that
 * only Windows refuses, so that a lake can be copied anywhere.
 */
export function keyProblem(key: string): string | undefined {
  if (typeof key !== "string") return "it is not a string";
  if (key === "") return "it is empty";
  if (exceeds(key, MAX_KEY_BYTES)) return `it is longer than ${MAX_KEY_BYTES} bytes`;
  if (CONTROL.test(key)) return "it has a control character";
  if (key.includes("\\")) return "it has a backslash";
  if (SURROGATE.test(key)) return "it is not well-formed Unicode";
  if (key.search(WINDOWS_MAPPED) >= 0) return "it has a private-use character that stands for another one on Windows";
  for (const segment of key.split("/")) {
    const problem = segmentProblem(segment);
    if (problem !== undefined) return problem;
  }
  if (TEMPORARY.test(key)) return `'${TEMPORARY_FOLDER}' is for unfinished files`;
  return undefined;
}

/**
 * Throws `InvalidInputError` (`bad_key`) unless `key` is safe in every store: non-empty segments joined by `/`, none of
 * them `.` or `..`, no control characters or backslashes, at most 1024 bytes (255 in a segment), nothing that Windows
 * would rename, and not in the folder of unfinished files.
 */
export function assertSafeKey(key: string): void {
  const problem = keyProblem(key);
  if (problem === undefined) return;
  const shown = JSON.stringify(String(key).slice(0, 200));
  throw new InvalidInputError("bad_key", `${shown} cannot be an object's key: ${problem}. Choose another key.`, {
    subject: String(key),
  });
}

/** Orders keys by their UTF-8 bytes. JavaScript's `<` compares UTF-16, where U+1F600 sorts before U+FF5E. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i);
    let y = b.charCodeAt(i);
    if (x === y) continue;
    if (x >= 0xd800 && y >= 0xd800) {
      // Surrogates (U+10000 and up) sort after U+E000 … U+FFFF in UTF-8: swap the two ranges.
      x = x >= 0xe000 ? x - 0x800 : x + 0x2000;
      y = y >= 0xe000 ? y - 0x800 : y + 0x2000;
    }
    return x - y;
  }
  return a.length - b.length;
}

/** The part of a key or prefix before its last slash; empty at the root. */
export function folderOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf("/")));
}

/** A key as a relative path of the file system. */
export function keyToPath(key: string, windows: boolean): string {
  if (!windows) return key;
  return key
    .replace(WINDOWS_FORBIDDEN, (character) => String.fromCharCode(0xf000 + character.charCodeAt(0)))
    .replaceAll("/", "\\");
}

/** A file's name as a segment of a key: undoes `keyToPath`. */
export function nameToSegment(name: string, windows: boolean): string {
  if (!windows) return name;
  return name.replace(WINDOWS_MAPPED, (character) => String.fromCharCode(character.charCodeAt(0) - 0xf000));
}
