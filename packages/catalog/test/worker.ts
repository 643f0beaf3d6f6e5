/** What the child processes of `processes.test.ts` do: `worker.mjs <job> <path> <arguments…>`, answers on stdout. */

import { nameKey } from "@eider/core";
import { openBetterSqlite } from "../src/better-sqlite.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { append, create, draft } from "./drafts.js";

const [job, path, ...args] = process.argv.slice(2) as [string, string, ...string[]];
const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Appends to the table, which whoever comes first creates. */
async function appendOnce(catalog: SqliteCatalog, name: string, batch: string, key: string): Promise<string> {
  for (;;) {
    const table = await catalog.table(name);
    const id = table?.id ?? `${nameKey(name)}-${process.pid}-${Math.random()}`;
    const intent = await catalog.begin();
    const result = await catalog.commit({
      ...draft(...(table ? [] : [create(id, name)]), append(id, batch, [key])),
      intent: intent.id,
    });
    if (result.status !== "stale") return `${result.status} ${JSON.stringify(result.receipts)}`;
  }
}

/** So that several start at the same moment. */
async function until(time: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, time - Date.now() - 5)));
  while (Date.now() < time);
}

switch (job) {
  // Every batch of 0 … count−1: all processes race for the same ids.
  case "race": {
    await using catalog = await SqliteCatalog.open({ path });
    for (let i = 0; i < Number(args[0]); i++) {
      print(await appendOnce(catalog, "events", `b-${i}`, `${process.pid}/${i}`));
    }
    break;
  }
  // One batch into each of a row of fresh catalogs, each opened at a given moment.
  case "create": {
    const [batch, rounds, start, everyMs] = args as [string, string, string, string];
    for (let round = 0; round < Number(rounds); round++) {
      await until(Number(start) + round * Number(everyMs));
      await using catalog = await SqliteCatalog.open({ path: `${path}/${round}/catalog.sqlite` });
      print(`${catalog.lakeId} ${await appendOnce(catalog, "events", batch, `${batch}/${round}`)}`);
    }
    break;
  }
  // Batches without end, each printed once it is acknowledged.
  case "append": {
    await using catalog = await SqliteCatalog.open({ path });
    for (let i = 0; ; i++) {
      const batch = `${process.pid}/${i}`;
      await appendOnce(catalog, "events", batch, batch);
      print(batch);
    }
  }
  // Reads once, and once more after so many milliseconds if told.
  case "read": {
    try {
      await using catalog = await SqliteCatalog.open({ path, mode: "read" });
      print(JSON.stringify([(await catalog.head()).snapshot, (await catalog.tables()).map(({ rows }) => rows)]));
      if (args[0] !== undefined) {
        print("waiting");
        await new Promise((resolve) => setTimeout(resolve, Number(args[0])));
        print(JSON.stringify([(await catalog.head()).snapshot, (await catalog.tables()).map(({ rows }) => rows)]));
      }
    } catch (error) {
      print((error as { code: string }).code);
    }
    break;
  }
  // Opens the native module, which Node.js 24 and later have no need of.
  case "better-sqlite3": {
    try {
      openBetterSqlite(undefined, { readonly: false, create: true, blockMs: 0, copy: false }).close();
      print("opened");
    } catch (error) {
      print((error as { code: string }).code);
    }
    break;
  }
}
