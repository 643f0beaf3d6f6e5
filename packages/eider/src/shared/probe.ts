/** Whether a store keeps the one promise that a shared lake rests on: of racing creations, one succeeds. */

import { AlreadyExistsError, StoreError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";

const RACERS = 4;

/** @throws StoreError `not_shareable`, with the reason */
export async function assertShareable(store: ObjectStore, newId: () => string): Promise<void> {
  const refuse = (reason: string): never => {
    throw new StoreError(
      "not_shareable",
      `${store.url} cannot hold a shared lake: ${reason}. Use a store that creates objects conditionally (If-None-Match)`,
      { subject: store.url },
    );
  };
  if (!store.capabilities.conditionalPut) refuse("it cannot create an object only if it is absent");
  const key = `_eider/probe/${newId()}`;
  const put = async (racer: number): Promise<"won" | "lost"> => {
    try {
      await store.put(key, Buffer.from(`racer ${racer}\n`), { ifAbsent: true });
      return "won";
    } catch (error) {
      if (error instanceof AlreadyExistsError) return "lost";
      throw error;
    }
  };
  try {
    const race = await Promise.all(Array.from({ length: RACERS }, (_, racer) => put(racer)));
    const winners = race.filter((result) => result === "won").length;
    if (winners > 1) refuse(`${winners} of ${RACERS} racing creations of one object succeeded`);
    // A request that was sent twice may have met itself: then the object is there all the same.
    if (winners === 0 && !(await store.head(key))) refuse(`none of ${RACERS} racing creations of one object succeeded`);
    if ((await put(RACERS)) === "won") refuse("an object that is there was created again");
  } finally {
    await store.delete(key).catch(() => {});
  }
}
