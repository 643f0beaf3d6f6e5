/**
 * Every request that a put makes, failing in every way: before its effect, after it, without an answer, later than
 * its answer; once, for good, or with all that follows. Whatever happens, readers see the old object or the whole new one,
 * no multipart upload is left behind, the error says what happened, and once the store is well again the put goes through.
 */

import { afterAll, describe, expect, test } from "vitest";
import { S3Store } from "../src/s3.js";
import { Plantation, type PlantedFault } from "./planted.js";
import { casesOf, EXTENTS, problemsOf, run, runCase, shapes } from "./s3-sweep.js";

/** Cases at once: many of them wait for a time to pass, the large ones do not. */
const PARALLEL = { small: 12, large: 3 };

const covered = { requests: new Set<string>(), modes: new Set<string>(), cases: 0 };
afterAll(() => {
  const { requests, modes, cases } = covered;
  const sizes = `${requests.size} requests × ${modes.size} modes × up to ${EXTENTS.length} extents`;
  console.log(`fault sweep of S3Store.put: ${sizes}, ${cases} cases`);
});

describe("a put in which a request goes wrong", () => {
  test.each(shapes)("$name", { timeout: 900_000 }, async (shape) => {
    const calm = await run(shape, []);
    if (shape.ends === undefined) expect(calm.error).toBeUndefined();
    expect(problemsOf(shape, "once", "none", "none", calm)).toEqual([]);
    expect(calm.requests.length).toBeGreaterThan(0);

    const failures: string[] = [];
    const work = casesOf(shape, calm.requests).values();
    const worker = async (): Promise<void> => {
      for (const each of work) {
        failures.push(...(await runCase(shape, each)));
        covered.requests.add(`${shape.name} ${each.index}`);
        covered.modes.add(each.mode);
        covered.cases++;
      }
    };
    await Promise.all(Array.from({ length: shape.streamed ? PARALLEL.large : PARALLEL.small }, worker));
    expect(failures).toEqual([]);
  });
});

describe("the sweep notices", () => {
  const plantation = new Plantation();
  afterAll(() => plantation.remove());

  const faults: readonly (PlantedFault & { readonly shape: string; readonly mode: string; readonly extent: string })[] =
    [
      {
        fault: "an upload that is not aborted when its source fails",
        check: "uploads are left behind",
        file: "s3-put.ts",
        from: "await upload?.abort();",
        to: "",
        shape: "a stream that fails",
        mode: "500 before",
        extent: "once",
      },
      {
        fault: "an unknown outcome that is told as a failure",
        check: "and the object is there",
        file: "s3-commit.ts",
        from: "if (failure?.unknown) unsettled = cause;",
        to: "",
        shape: "bytes",
        mode: "500 after",
        extent: "for good",
      },
      {
        fault: "a put that does not know its own object again",
        check: "one fault is too much for it",
        file: "s3-object.ts",
        from: "mark: Metadata?.[MARK]",
        to: "mark: undefined",
        shape: "bytes if absent",
        mode: "answer lost",
        extent: "once",
      },
      {
        fault: "a request that is sent once and no more",
        check: "one fault is too much for it",
        file: "backoff.ts",
        from: "|| attempt >= attempts) throw error;",
        to: "|| attempt >= 1) throw error;",
        shape: "bytes",
        mode: "reset before",
        extent: "once",
      },
    ];

  test.each(faults)("$fault", async (planted) => {
    const { S3Store: Faulty } = await plantation.plant<typeof import("../src/s3.js")>(planted, "s3.ts");
    const shape = shapes.find(({ name }) => name === planted.shape)!;
    const calm = await run(shape, []);
    const found = casesOf(shape, calm.requests).find(
      ({ mode, extent }) => mode === planted.mode && extent === planted.extent,
    )!;
    expect(await runCase(shape, found, S3Store)).toEqual([]);
    const problems = await runCase(shape, found, Faulty);
    expect(problems.join("\n")).toContain(planted.check);
  });
});
