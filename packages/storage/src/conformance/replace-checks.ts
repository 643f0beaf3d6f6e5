import { InvalidInputError, StoreError } from "@eider/core";
import type { PutOptions } from "../store.js";
import {
  type ConformanceCheck,
  chunks,
  expect,
  expectBytes,
  expectEqual,
  expectError,
  keysOf,
  read,
  text,
  winners,
} from "./check.js";

/** Puts with a condition on the object that is there, and puts that are tried once. */
export const replaceChecks: readonly ConformanceCheck[] = [
  {
    name: "put if match: replaces the object that has the etag, from whichever call it came",
    needs: "conditionalReplace",
    run: async (store) => {
      const etags: (() => Promise<string | undefined>)[] = [
        async () => (await store.head("object"))?.etag,
        async () => (await store.get("object", { range: { start: 0, end: 1 } })).etag,
        async () => {
          for await (const { etag } of store.list("object")) return etag;
          return undefined;
        },
      ];
      let last = (await store.put("object", text("0"))).etag;
      for (const [i, take] of etags.entries()) {
        const bytes = text(`replaced ${i}`);
        const before = last;
        last = (await store.put("object", i % 2 === 0 ? bytes : chunks(bytes, 3), { ifMatch: last })).etag;
        expect(last !== before, "the etag did not change");
        expectBytes(await read(store, "object"), bytes, "the object");
        const again = text(`again ${i}`);
        last = (await store.put("object", again, { ifMatch: (await take()) ?? "" })).etag;
        expectBytes(await read(store, "object"), again, "the object");
      }
    },
  },
  {
    name: "put if match: another etag is StoreError etag_mismatch and the object stays",
    needs: "conditionalReplace",
    run: async (store) => {
      const { etag: old } = await store.put("object", text("first"));
      const { etag } = await store.put("object", text("second"));
      for (const body of [text("third"), chunks(text("third"), 2)]) {
        await expectError(store.put("object", body, { ifMatch: old }), StoreError, "the put", "etag_mismatch");
      }
      expectBytes(await read(store, "object"), text("second"), "the object");
      expectEqual((await store.head("object"))?.etag, etag, "etag");
    },
  },
  {
    name: "put if match: an absent object is StoreError etag_mismatch and is not created",
    needs: "conditionalReplace",
    run: async (store) => {
      const { etag } = await store.put("object", text("first"));
      await store.delete("object");
      for (const key of ["object", "never"]) {
        await expectError(
          store.put(key, text("x"), { ifMatch: etag }),
          StoreError,
          `the put of ${key}`,
          "etag_mismatch",
        );
      }
      expectEqual(await keysOf(store), [], "keys");
    },
  },
  {
    name: "put if match: of racing puts exactly one wins, and its bytes are stored",
    needs: "conditionalReplace",
    run: async (store, { rounds }) => {
      for (let round = 0; round < rounds; round++) {
        const { etag } = await store.put("object", text(`start ${round}`));
        const bodies = Array.from({ length: 8 }, (_, i) => text(`writer ${i} of round ${round}`));
        const won = await winners(
          bodies.map((body, i) => store.put("object", i % 2 === 0 ? body : chunks(body, 7), { ifMatch: etag })),
          StoreError,
          "etag_mismatch",
        );
        expectEqual(won.length, 1, `winners of round ${round}`);
        expectBytes(await read(store, "object"), bodies[won[0]!]!, "the winner's object");
      }
    },
  },
  {
    name: "put if match: an object that was replaced while the body was read stays",
    needs: "conditionalReplace",
    run: async (store) => {
      const { etag } = await store.put("object", text("first"));
      async function* slow(): AsyncGenerator<Uint8Array> {
        yield text("slow ");
        await store.put("object", text("fast"), { ifMatch: etag });
        yield text("writer");
      }
      await expectError(store.put("object", slow(), { ifMatch: etag }), StoreError, "the slow put", "etag_mismatch");
      expectBytes(await read(store, "object"), text("fast"), "the object");
    },
  },
  {
    name: "put if match: a store that cannot do it refuses it and changes nothing",
    run: async (store) => {
      if (store.capabilities.conditionalReplace) return;
      const { etag } = await store.put("object", text("first"));
      await expectError(
        store.put("object", text("second"), { ifMatch: etag }),
        StoreError,
        "the put",
        "no_conditional_replace",
      );
      expectBytes(await read(store, "object"), text("first"), "the object");
    },
  },
  {
    name: "put if match: together with if absent, or empty, it is InvalidInputError",
    run: async (store) => {
      const { etag } = await store.put("object", text("first"));
      const wrong: readonly PutOptions[] = [{ ifAbsent: true, ifMatch: etag }, { ifMatch: "" }];
      for (const options of wrong) {
        for (const key of ["object", "other"]) {
          await expectError(store.put(key, text("x"), options), InvalidInputError, "the put", "bad_condition");
        }
      }
      expectEqual(await keysOf(store), ["object"], "keys");
      expectBytes(await read(store, "object"), text("first"), "the object");
    },
  },
  {
    name: "put without retries: has the outcomes of every put",
    run: async (store) => {
      const once = { retries: "none" } as const;
      await store.put("object", text("first"), once);
      expectBytes(await read(store, "object"), text("first"), "the object");
      await store.put("new", chunks(text("stream"), 2), { ...once, ifAbsent: true });
      expectBytes(await read(store, "new"), text("stream"), "the new object");
      const error = await store.put("new", text("x"), { ...once, ifAbsent: true }).catch((thrown: unknown) => thrown);
      expectEqual((error as Error | undefined)?.name, "AlreadyExistsError", "the error of the second put");
      expectBytes(await read(store, "new"), text("stream"), "the new object");
    },
  },
];
