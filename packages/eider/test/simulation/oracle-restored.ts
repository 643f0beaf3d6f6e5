/**
 * What must hold where the store was set back to a backup while processes ran. What they were told before is lost as far
 * as the backup does not have it. From then on no query tells of the log that is gone: who is of that log stops and says so,
 * and who begins on what is there now is served as ever.
 *
 * A process that is about to commit at that very moment cannot know: its files are gone, or its entry hangs in the air
 * behind a gap. Where one has, nothing is looked at; that is why a restore wants the processes stopped.
 */

import { CorruptionError, EiderError } from "@eider/core";
import { replay } from "./model.js";
import { checkAnswers, checkQuery } from "./oracle-answers.js";
import { checkEvent, type Wrong } from "./oracle-events.js";
import { checkLog, readLog } from "./oracle-log.js";
import type { World } from "./world.js";

export async function judgeRestored(
  world: World,
  { moment, entries }: NonNullable<World["restored"]>,
): Promise<string[]> {
  const problems: string[] = [];
  const { history, bucket, mixed } = world;
  const log = readLog(world);
  checkLog(log, problems);
  const model = replay(log, history, problems);
  const since = history.filter(({ opened }) => opened > moment);
  const tags = new Set(since.map(({ tag }) => tag));
  const unaware = model.committed.some(({ entry, tag }) => entry.n > entries && !tags.has(tag));
  if (unaware || bucket.entries.size > log.length) {
    world.note("restored", "under a commit");
    return problems;
  }
  world.note("restored", "between commits");
  const told = { history: since, asked: history, mixed, bucket };
  for (const event of history) {
    const wrong: Wrong = (what) => void problems.push(`${event.tag} (${event.work.kind}, ${event.outcome}): ${what}`);
    if (event.started <= moment) continue;
    if (event.error !== undefined && isStop(event.error)) {
      world.note("restored", "a process stops");
      continue;
    }
    checkQuery(event, { history: since, stalenessMs: 0 }, model, wrong);
    if (event.opened > moment) checkEvent(event, told, model, wrong);
  }
  await world
    .inspect((opened) => checkAnswers(opened, bucket, model, problems))
    .catch((error: unknown) => {
      if (!isStop(error)) problems.push(`the lake cannot be read: ${String(error)}`);
    });
  return problems;
}

function isStop(error: unknown): boolean {
  return (
    (error instanceof EiderError && error.code === "log_replaced") ||
    (error instanceof CorruptionError && error.code === "bad_entry")
  );
}
