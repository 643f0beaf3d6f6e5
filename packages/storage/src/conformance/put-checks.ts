import { AlreadyExistsError } from "@eider/core";
import {
  type ConformanceCheck,
  chunks,
  expect,
  expectBytes,
  expectEqual,
  expectError,
  keysOf,
  pattern,
  read,
  text,
  turn,
  winners,
} from "./check.js";

const MIB = 1024 * 1024;

/** A small put takes less, and its time is that of its beginning, its end or between. */
const PUT_TIME_MILLISECONDS = 10_000;

/** Bytes all of one value: a mixture of two shows at once. */
function filled(value: number, length: number): Uint8Array {
  return new Uint8Array(length).fill(value);
}

export const putChecks: readonly ConformanceCheck[] = [
  {
    name: "put: get returns the same bytes",
    run: async (store) => {
      const bytes = pattern(1000);
      await store.put("folder/object", bytes);
      expectBytes(await read(store, "folder/object"), bytes, "the object");
    },
  },
  {
    name: "put: an empty object is an object",
    run: async (store) => {
      expectEqual((await store.put("empty", new Uint8Array(0))).size, 0, "size from put");
      expectEqual((await store.head("empty"))?.size, 0, "size from head");
      expectBytes(await read(store, "empty"), new Uint8Array(0), "the object");
      expectEqual(await keysOf(store), ["empty"], "the listing");
    },
  },
  {
    name: "put: an object of several MiB comes back whole",
    run: async (store) => {
      const bytes = pattern(9 * MIB + 17);
      expectEqual((await store.put("large", bytes)).size, bytes.length, "size from put");
      expectBytes(await read(store, "large"), bytes, "the object");
    },
  },
  {
    name: "put: the newest object is seen at once by get, head and list",
    run: async (store) => {
      for (let length = 1; length <= 20; length++) {
        await store.put("object", pattern(length));
        expectEqual((await store.head("object"))?.size, length, "size from head");
        expectEqual((await read(store, "object")).length, length, "bytes from get");
        for await (const info of store.list("object")) expectEqual(info.size, length, "size from list");
      }
    },
  },
  {
    name: "put: size, etag and time agree in put, head, get and list",
    run: async (store) => {
      const put = await store.put("a/b", pattern(123));
      const { body: _, ...got } = await store.get("a/b", { range: { start: 0, end: 1 } });
      const head = await store.head("a/b");
      const facts = (info: typeof head) => info && [info.key, info.size, info.etag, info.modifiedAt];
      expectEqual(put.size, 123, "size from put");
      expectEqual(facts(head)?.slice(0, 3), facts(put)?.slice(0, 3), "head and put");
      const apart = Math.abs(put.modifiedAt - (head?.modifiedAt ?? 0));
      expect(apart <= PUT_TIME_MILLISECONDS, `the times of put and head are ${apart} ms apart`);
      expectEqual(facts(got), facts(head), "get (of a range) and head");
      for await (const info of store.list("")) expectEqual(facts(info), facts(head), "list and head");
    },
  },
  {
    name: "put: the etag changes with the content, also at the same size",
    run: async (store, { rounds }) => {
      const etags = new Set<string>();
      const count = 3 * rounds;
      for (let i = 0; i < count; i++) etags.add((await store.put("object", text(String(i).padStart(8, "0")))).etag);
      expectEqual(etags.size, count, "different etags of different contents");
    },
  },
  {
    name: "put: the time is in milliseconds since 1970",
    run: async (store) => {
      const { modifiedAt } = await store.put("object", text("x"));
      // 2001-09-09 in milliseconds, which in seconds would be 33,658 years later.
      expect(Number.isFinite(modifiedAt) && modifiedAt > 1e12 && modifiedAt < 1e14, `modifiedAt is ${modifiedAt}`);
    },
  },
  {
    name: "put: changing the passed bytes afterwards does not change the object",
    run: async (store) => {
      const bytes = pattern(100);
      await store.put("object", bytes);
      bytes.fill(0);
      expectBytes(await read(store, "object"), pattern(100), "the object");
    },
  },
  {
    name: "put: changing returned bytes does not change the object",
    run: async (store) => {
      await store.put("object", pattern(100));
      (await read(store, "object")).fill(0);
      for await (const chunk of (await store.get("object")).body) chunk.fill(0);
      expectBytes(await read(store, "object"), pattern(100), "the object");
    },
  },
  {
    name: "put: a view into a larger buffer stores only the view",
    run: async (store) => {
      const bytes = pattern(1000);
      await store.put("object", bytes.subarray(100, 200));
      expectBytes(await read(store, "object"), bytes.slice(100, 200), "the object");
    },
  },
  {
    name: "put: progress rises to the size",
    run: async (store) => {
      for (const body of [pattern(3 * MIB), chunks(pattern(3 * MIB), 100_000)]) {
        const seen: number[] = [];
        await store.put("object", body, { onProgress: (bytes) => seen.push(bytes) });
        expectEqual(seen.at(-1), 3 * MIB, "the last progress");
        expect(
          seen.every((bytes, i) => i === 0 || bytes >= seen[i - 1]!),
          `progress went back: ${seen}`,
        );
      }
    },
  },
  {
    name: "put: objects put at the same time are all there",
    run: async (store) => {
      const keys = Array.from({ length: 50 }, (_, i) => `parallel/${String(i % 7)}/${String(i).padStart(2, "0")}`);
      await Promise.all(keys.map((key) => store.put(key, text(key))));
      for (const key of keys) expectBytes(await read(store, key), text(key), key);
    },
  },
  {
    name: "put: readers see a whole old or new object while it is replaced",
    run: async (store, { rounds }) => {
      await store.put("object", filled(0, 50_000));
      let done = false;
      const writer = (async () => {
        try {
          for (let value = 1; value <= rounds; value++) {
            const bytes = filled(value, 50_000 + value * 1000);
            await store.put("object", value % 2 === 0 ? bytes : chunks(bytes, 20_000));
          }
        } finally {
          done = true;
        }
      })();
      const reader = async (): Promise<void> => {
        while (!done) {
          const bytes = await read(store, "object");
          const value = bytes[0] ?? -1;
          expectBytes(bytes, filled(value, 50_000 + value * 1000), `the object that begins with ${value}`);
          await turn();
        }
      };
      await Promise.all([writer, reader(), reader()]);
    },
  },
  {
    name: "put: racing writers of one key leave one whole object",
    run: async (store, { rounds }) => {
      for (let round = 0; round < rounds; round++) {
        const bodies = [1, 2, 3, 4].map((value) => filled(value, 1000 * value));
        await Promise.all(bodies.map((body, i) => store.put("object", i % 2 === 0 ? body : chunks(body, 500))));
        const bytes = await read(store, "object");
        expectBytes(bytes, bodies[(bytes[0] ?? 1) - 1]!, "the object");
      }
    },
  },
  {
    name: "put if absent: creates an object",
    run: async (store) => {
      const info = await store.put("a/new", text("first"), { ifAbsent: true });
      expectEqual((await store.head("a/new"))?.etag, info.etag, "etag");
      expectBytes(await read(store, "a/new"), text("first"), "the object");
    },
  },
  {
    name: "put if absent: an existing object stays and the call throws AlreadyExistsError",
    run: async (store) => {
      const { etag } = await store.put("object", text("first"));
      for (const body of [text("second"), chunks(text("third"), 2), new Uint8Array(0)]) {
        await expectError(store.put("object", body, { ifAbsent: true }), AlreadyExistsError, "the second put");
      }
      expectBytes(await read(store, "object"), text("first"), "the object");
      expectEqual((await store.head("object"))?.etag, etag, "etag");
    },
  },
  {
    name: "put if absent: an existing empty object stays too",
    run: async (store) => {
      await store.put("empty", new Uint8Array(0));
      await expectError(store.put("empty", text("x"), { ifAbsent: true }), AlreadyExistsError, "the second put");
      expectEqual((await store.head("empty"))?.size, 0, "size");
    },
  },
  {
    name: "put if absent: creates again after a delete",
    run: async (store) => {
      await store.put("object", text("first"), { ifAbsent: true });
      await store.delete("object");
      await store.put("object", text("second"), { ifAbsent: true });
      expectBytes(await read(store, "object"), text("second"), "the object");
    },
  },
  {
    name: "put if absent: false overwrites",
    run: async (store) => {
      await store.put("object", text("first"), { ifAbsent: false });
      await store.put("object", text("second"), { ifAbsent: false });
      expectBytes(await read(store, "object"), text("second"), "the object");
    },
  },
  {
    name: "put if absent: of racing puts exactly one wins, and its bytes are stored",
    needs: "conditionalPut",
    run: async (store, { rounds }) => {
      for (let round = 0; round < rounds; round++) {
        const key = `race/${round}`;
        const bodies = Array.from({ length: 8 }, (_, i) => text(`writer ${i}`.repeat(i + 1)));
        const won = await winners(
          bodies.map((body) => store.put(key, body, { ifAbsent: true })),
          AlreadyExistsError,
        );
        expectEqual(won.length, 1, `winners of round ${round}`);
        expectBytes(await read(store, key), bodies[won[0]!]!, "the winner's object");
      }
    },
  },
  {
    name: "put if absent: of racing streams exactly one wins, and its bytes are stored",
    needs: "conditionalPut",
    run: async (store, { rounds }) => {
      for (let round = 0; round < rounds; round++) {
        const key = `race/${round}`;
        const bodies = [1, 2, 3, 4, 5].map((value) => filled(value, 100 * value));
        const won = await winners(
          bodies.map((body) => store.put(key, chunks(body, 60), { ifAbsent: true })),
          AlreadyExistsError,
        );
        expectEqual(won.length, 1, `winners of round ${round}`);
        expectBytes(await read(store, key), bodies[won[0]!]!, "the winner's object");
      }
    },
  },
  {
    name: "put if absent: an object that came while the body was read stays",
    needs: "conditionalPut",
    run: async (store) => {
      async function* slow(): AsyncGenerator<Uint8Array> {
        yield text("slow ");
        await store.put("object", text("fast"), { ifAbsent: true });
        yield text("writer");
      }
      await expectError(store.put("object", slow(), { ifAbsent: true }), AlreadyExistsError, "the slow put");
      expectBytes(await read(store, "object"), text("fast"), "the object");
    },
  },
];
