/** Schemas as the catalog keeps them: as JSON text, which every commit needs and few commits change. */

import type { Schema } from "@eider/core";
import { readSchema } from "./entry.js";
import { readJson } from "./sqlite-json.js";

/** Schemas that are kept in memory as objects. */
const KEPT = 256;
/** Longer texts are read each time: what is kept stays within some megabytes. */
const MAX_TEXT = 64 * 1024;

/** By text, the one least recently asked for first. Frozen, since callers share them. */
const kept = new Map<string, Schema>();

/** @throws CorruptionError `catalog_corrupt` */
export function storedSchemaOf(text: string): Schema {
  const known = kept.get(text);
  const schema = known ?? deepFreeze(readSchema(readJson(text)));
  if (text.length > MAX_TEXT) return schema;
  kept.delete(text);
  kept.set(text, schema);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
  return schema;
}

function deepFreeze<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === "object" && part !== null) deepFreeze(part);
  return Object.freeze(value);
}
