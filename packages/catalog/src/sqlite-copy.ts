/** A catalog file as bytes that make a database in memory. */

import { readFileSync } from "node:fs";

/**
 * SQLite's file format, bytes 18 and 19: 2 says that the file goes with a write-ahead log, which a database in memory
 * cannot have; 1 that it stands alone.
 */
export function readAlone(path: string): Buffer {
  const file = readFileSync(path);
  if (file.length > 19) file.fill(1, 18, 20);
  return file;
}
