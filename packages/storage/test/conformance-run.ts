import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { conformanceChecks, runCheck } from "../src/conformance.js";
import type { ObjectStore } from "../src/index.js";

export interface ConformanceRun {
  /** Fewer rounds and objects. Default true. */
  readonly fast?: boolean;
  /** Whether checks of `ifMatch` are skipped, since the store has none. Default false. */
  readonly withoutReplace?: boolean;
}

/** Runs every check on a store as a test of its own, and prints how many there were. */
export function conformanceRun(
  name: string,
  make: () => ObjectStore | Promise<ObjectStore>,
  { fast = true, withoutReplace = false }: ConformanceRun = {},
): void {
  describe(name, () => {
    const counts = { passed: 0, skipped: 0 };
    test.each(conformanceChecks)("$name", async (check) => {
      const result = await runCheck(check, async () => make(), { fast });
      if (!result.ok) throw result.error;
      expect(result.skipped).toBe(withoutReplace && check.needs === "conditionalReplace");
      counts[result.skipped ? "skipped" : "passed"]++;
    });
    afterAll(() => {
      const skipped = counts.skipped === 0 ? "" : `, ${counts.skipped} skipped: it has no ifMatch`;
      console.log(`conformance of ${name}: ${counts.passed} of ${conformanceChecks.length} checks passed${skipped}`);
    });
  });
}

/** The function of a name in the code of a document, as it stands there. */
export async function documented<T>(markdown: string, name: string): Promise<T> {
  const blocks = [...markdown.matchAll(/^```ts[^\n]*\n(.*?)^```$/gms)].map(([, code]) => code!);
  const code = blocks.find((block) => block.includes(`function ${name}(`));
  if (code === undefined) throw new Error(`no code block has a function ${name}`);
  // The function and what it imports, without what the document does with it.
  const end = code.indexOf("\n}\n", code.indexOf(`function ${name}(`)) + 3;
  const folder = join(import.meta.dirname, `documented-${process.pid}`);
  await mkdir(folder);
  try {
    const file = join(folder, `${name}.ts`);
    await writeFile(file, `${code.slice(0, end)}\nexport { ${name} };\n`);
    return ((await import(file)) as Record<string, T>)[name]!;
  } finally {
    await rm(folder, { recursive: true });
  }
}
