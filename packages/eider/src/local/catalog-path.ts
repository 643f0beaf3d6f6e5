import { join } from "node:path";

/** The catalog of a local lake in a folder. */
export function catalogPath(root: string): string {
  return join(root, "_eider", "catalog.sqlite");
}
