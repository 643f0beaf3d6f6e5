/**
 * What must hold of copies, and of a lake that was moved: who was told that one is there finds all of it, as of one
 * snapshot; one that was not finished is no lake, and can be finished; and of a moved lake only the new place goes on.
 */

import type { Entry } from "../../../catalog/src/entry.js";
import { readLakeFile } from "../../src/lake-file.js";
import type { Model } from "./model.js";
import { acknowledgedBefore, checkAnswers } from "./oracle-answers.js";
import { isMove } from "./workload.js";
import type { World } from "./world.js";

export async function checkCopies(
  world: World,
  log: readonly Entry[],
  model: Model,
  problems: string[],
): Promise<void> {
  const { history, places } = world;
  for (const place of places.keys()) {
    const tries = history.filter((event) => isMove(event.work) && event.place === place);
    const wrong = (what: string): void => void problems.push(`the lake at ${place} ${what}`);
    // The first try may have come to its end, without having been told so.
    const least = tries.some(({ copied }) => copied) ? acknowledgedBefore(tries[0]!, history, 0) : 0;
    await world.finish(async ({ elsewhere, lake }) => {
      if (await readLakeFile(elsewhere(place))) return;
      if (tries.some(({ outcome }) => outcome === "ok")) wrong("is none, and was told to be one");
      const { snapshot } =
        tries[0]!.work.kind === "share" ? await lake.share(elsewhere(place)) : await lake.copyTo(elsewhere(place));
      if (snapshot !== log.length) wrong(`was finished at snapshot ${snapshot} of ${log.length}`);
    });
    await world.inspectPlace(place, async (opened, bucket) => {
      const { snapshot } = await opened.catalog.head();
      for (const { copied, tag } of tries)
        if (copied && (copied.snapshot !== snapshot || copied.lake !== opened.lake.id))
          wrong(`is not what ${tag} was told`);
      if (snapshot < least) wrong(`is of snapshot ${snapshot}, and ${least} was acknowledged before it was begun`);
      if (tries[0]!.work.kind === "share" && snapshot < log.length)
        wrong(`is of snapshot ${snapshot}, and the old one went on to ${log.length}`);
      const told: string[] = [];
      await checkAnswers(opened, bucket, upTo(model, snapshot), told);
      for (const what of told) wrong(`says that ${what}`);
    });
  }
}

/** The model of a lake that has come to a snapshot and no further. */
function upTo({ snapshots, committed, ...others }: Model, snapshot: number): Model {
  return {
    ...others,
    snapshots: snapshots.slice(0, snapshot + 1),
    committed: committed.filter(({ entry }) => entry.n <= snapshot),
  };
}
