/** JSON kept in the catalog's columns: ours, yet read with care, since a disk may have changed it. */

import { CorruptionError } from "@eider/core";
import { JsonReader } from "./json-reader.js";

/** @throws CorruptionError `catalog_corrupt` */
export function readJson(text: string): JsonReader {
  return JsonReader.parse(text, corrupt);
}

/** Reports that the catalog contradicts itself. */
export function corrupt(reason: string): never {
  throw new CorruptionError("catalog_corrupt", `the catalog contradicts itself: ${reason}`);
}
