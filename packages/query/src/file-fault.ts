/** Errors that tell which data file is not what was committed. */

import { CorruptionError } from "@eider/core";

export function missingFile(key: string, cause?: unknown): CorruptionError {
  return new CorruptionError("missing_file", `the data file ${key} is missing from the store: run lake.verify()`, {
    subject: key,
    ...(cause !== undefined && { cause }),
  });
}

/** @param found what it has, as in `… than were committed` */
export function damagedFile(key: string, found: string, cause?: unknown): CorruptionError {
  return new CorruptionError(
    "damaged_file",
    `the data file ${key} has ${found} than were committed: run lake.verify()`,
    {
      subject: key,
      ...(cause !== undefined && { cause }),
    },
  );
}
