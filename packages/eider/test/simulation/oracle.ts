/**
 * What must hold of any history: an acknowledged append is there exactly once, one whose fate is unknown at most once,
 * one that failed never, not even later; and every process sees, at every snapshot, what the log says.
 */

import { replay } from "./model.js";
import { checkAnswers, checkQuery } from "./oracle-answers.js";
import { checkCopies } from "./oracle-copies.js";
import { checkEvent, type Wrong } from "./oracle-events.js";
import { checkFeed } from "./oracle-feed.js";
import { checkLog, checkScrubbed, checkStubs, readLog } from "./oracle-log.js";
import { judgeRestored } from "./oracle-restored.js";
import type { World } from "./world.js";

/** What is wrong; empty if nothing is. */
export async function judge(world: World): Promise<string[]> {
  if (world.restored !== undefined) return judgeRestored(world, world.restored);
  const problems: string[] = [];
  const { history, bucket, mixed } = world;
  const log = readLog(world);
  checkLog(log, problems);
  const model = replay(log, history, problems);
  const told = { history, asked: history, mixed, bucket };
  for (const event of history) {
    const wrong: Wrong = (what) => void problems.push(`${event.tag} (${event.work.kind}, ${event.outcome}): ${what}`);
    checkEvent(event, told, model, wrong);
    checkQuery(event, world, model, wrong);
  }
  checkFeed(log, problems);
  if (bucket.overwritten.length > 0) problems.push(`overwritten: ${bucket.overwritten.join(", ")}`);
  if (world.mode === "shared") {
    checkStubs(world, log, problems);
    checkScrubbed(bucket, history, problems);
  }
  try {
    await world.inspect((opened) => checkAnswers(opened, bucket, model, problems));
    await checkCopies(world, log, model, problems);
  } catch (error) {
    problems.push(`the lake cannot be read: ${String(error)}`);
  }
  return problems;
}
