import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Runs against the built package, as benchmarks do. */
async function run(script: string): Promise<unknown> {
  const args = ["--input-type=module", "-e", `import { startFakeS3Process } from "@eider/test-s3";\n${script}`];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname, timeout: 30_000 });
  return JSON.parse(stdout);
}

test("a fake in a process of its own serves, by its options, and ends", async () => {
  const script = `
    const s3 = await startFakeS3Process({ anonymous: true });
    const url = s3.endpoint + "/" + (await s3.makeBucket()) + "/k";
    const put = await fetch(url, { method: "PUT", body: "words" });
    const words = await (await fetch(url)).text();
    await s3.stop();
    const after = await fetch(url).then(() => "answers", (error) => error.cause.code);
    console.log(JSON.stringify([put.status, words, after]));`;
  expect(await run(script)).toEqual([200, "words", "ECONNREFUSED"]);
});

test("it keeps no process alive, and goes with the one that started it", async () => {
  const endpoint = await run("console.log(JSON.stringify((await startFakeS3Process()).endpoint));");
  await expect(fetch(endpoint as string)).rejects.toMatchObject({ cause: { code: "ECONNREFUSED" } });
});
