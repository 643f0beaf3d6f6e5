import { listObservations } from "./list-observations.js";
import { objectObservations } from "./object-observations.js";
import type { Observer } from "./observer.js";
import { uploadObservations } from "./upload-observations.js";

/** Something that S3 does and that can be seen from outside. */
export interface Observation {
  readonly name: string;
  /** Servers that do otherwise, and what. */
  readonly differs?: Readonly<Record<string, string>>;
  /** Looks at an empty bucket; throws where it is otherwise. */
  run(observer: Observer): Promise<void>;
}

export const observations: readonly Observation[] = [...objectObservations, ...listObservations, ...uploadObservations];
