import { AlreadyExistsError, NotFoundError, StoreError } from "@eider/core";
import {
  compareKeys,
  MemoryStore,
  type ObjectBody,
  type ObjectInfo,
  type ObjectStore,
  readBody,
  type StoredObject,
  StoreWrapper,
} from "../src/index.js";

/** A store with one fault, and the check that must find it. */
export interface BrokenStore {
  readonly fault: string;
  readonly check: string;
  readonly make: () => ObjectStore;
}

class Intact extends StoreWrapper {}

/** A memory store with some of its calls replaced; `good` is the sound store inside. */
function broken(replace: (good: MemoryStore) => Partial<ObjectStore>): () => ObjectStore {
  return () => {
    const good = new MemoryStore();
    const store = new Intact(good);
    Object.defineProperties(store, Object.getOwnPropertyDescriptors(replace(good)));
    return store;
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

async function all(listing: AsyncIterable<ObjectInfo>): Promise<ObjectInfo[]> {
  const infos: ObjectInfo[] = [];
  for await (const info of listing) infos.push(info);
  return infos;
}

async function* gather(body: ObjectBody, into: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for await (const chunk of body instanceof Uint8Array ? [body] : body) {
    into.push(chunk.slice());
    yield chunk;
  }
}

const join = (chunks: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(chunks));

const withBody = (object: StoredObject, body: () => AsyncGenerator<Uint8Array>): StoredObject => ({
  ...object,
  body: { [Symbol.asyncIterator]: body },
});

/** Sorts a whole listing anew. */
const resorted =
  (order: (a: ObjectInfo, b: ObjectInfo) => number) =>
  (good: MemoryStore): Partial<ObjectStore> => ({
    async *list(prefix, options) {
      yield* (await all(good.list(prefix, options))).sort(order);
    },
  });

export const brokenStores: readonly BrokenStore[] = [
  {
    fault: "put is not atomic: half of the object is visible for a moment",
    check: "put: readers see a whole old or new object while it is replaced",
    make: broken((good) => ({
      async put(key, body, options = {}) {
        const bytes = await readBody(body, options);
        if (options.ifAbsent) return good.put(key, bytes, options);
        await good.put(key, bytes.subarray(0, bytes.length >> 1));
        await turn();
        return good.put(key, bytes);
      },
    })),
  },
  {
    fault: "a stream is stored chunk by chunk",
    check: "stream: nothing is visible before its end",
    make: broken((good) => ({
      async put(key, body, options = {}) {
        if (body instanceof Uint8Array || options.ifAbsent) return good.put(key, body, options);
        const chunks: Uint8Array[] = [];
        for await (const _ of gather(body, chunks)) await good.put(key, join(chunks));
        return good.put(key, join(chunks));
      },
    })),
  },
  {
    fault: "a failed stream leaves the part that had come",
    check: "stream: a source that throws leaves nothing, and its error is the put's",
    make: broken((good) => ({
      async put(key, body, options) {
        const chunks: Uint8Array[] = [];
        try {
          return await good.put(key, gather(body, chunks), options);
        } catch (error) {
          if (!(error instanceof AlreadyExistsError)) await good.put(key, join(chunks));
          throw error;
        }
      },
    })),
  },
  {
    fault: "put if absent overwrites",
    check: "put if absent: an existing object stays and the call throws AlreadyExistsError",
    make: broken((good) => ({ put: (key, body, { ifAbsent: _, ...rest } = {}) => good.put(key, body, rest) })),
  },
  {
    fault: "put if absent looks first and puts later",
    check: "put if absent: of racing puts exactly one wins, and its bytes are stored",
    make: broken((good) => ({
      async put(key, body, { ifAbsent, ...rest } = {}) {
        if (ifAbsent && (await good.head(key)) !== undefined) throw new AlreadyExistsError("object_exists", key);
        await turn();
        return good.put(key, body, rest);
      },
    })),
  },
  {
    fault: "put if absent is decided before the body is read",
    check: "put if absent: an object that came while the body was read stays",
    make: broken((good) => ({
      put(key, body, { ifAbsent, ...rest } = {}) {
        if (body instanceof Uint8Array || !ifAbsent)
          return good.put(key, body, { ...rest, ifAbsent: ifAbsent === true });
        return good.head(key).then((info) => {
          if (info !== undefined) throw new AlreadyExistsError("object_exists", key);
          return good.put(key, body, rest);
        });
      },
    })),
  },
  {
    fault: "if match is not looked at",
    check: "put if match: another etag is StoreError etag_mismatch and the object stays",
    make: broken((good) => ({ put: (key, body, { ifMatch: _, ...rest } = {}) => good.put(key, body, rest) })),
  },
  {
    fault: "if match creates what is absent",
    check: "put if match: an absent object is StoreError etag_mismatch and is not created",
    make: broken((good) => ({
      async put(key, body, { ifMatch, ...rest } = {}) {
        const absent = ifMatch !== undefined && (await good.head(key)) === undefined;
        return good.put(key, body, absent || ifMatch === undefined ? rest : { ...rest, ifMatch });
      },
    })),
  },
  {
    fault: "if match looks first and puts later",
    check: "put if match: of racing puts exactly one wins, and its bytes are stored",
    make: broken((good) => ({
      async put(key, body, { ifMatch, ...rest } = {}) {
        if (ifMatch !== undefined && (await good.head(key))?.etag !== ifMatch)
          throw new StoreError("etag_mismatch", key);
        await turn();
        return good.put(key, body, rest);
      },
    })),
  },
  {
    fault: "if match is decided before the body is read",
    check: "put if match: an object that was replaced while the body was read stays",
    make: broken((good) => ({
      async put(key, body, { ifMatch, ...rest } = {}) {
        if (ifMatch !== undefined && (await good.head(key))?.etag !== ifMatch)
          throw new StoreError("etag_mismatch", key);
        const bytes = await readBody(body, rest);
        return good.put(key, bytes, rest);
      },
    })),
  },
  {
    fault: "the etag of a put is not the one that if match wants",
    check: "put if match: replaces the object that has the etag, from whichever call it came",
    make: broken((good) => ({
      put: async (key, body, options) => {
        const info = await good.put(key, body, options);
        return { ...info, etag: `"${info.etag}"` };
      },
    })),
  },
  {
    fault: "if match overwrites in a store that says it cannot do it",
    check: "put if match: a store that cannot do it refuses it and changes nothing",
    make: broken((good) => ({
      capabilities: { ...good.capabilities, conditionalReplace: false },
      put: (key, body, { ifMatch: _, ...rest } = {}) => good.put(key, body, rest),
    })),
  },
  {
    fault: "of two conditions it takes one",
    check: "put if match: together with if absent, or empty, it is InvalidInputError",
    make: broken((good) => ({
      put: (key, body, { ifAbsent, ...rest } = {}) =>
        good.put(key, body, rest.ifMatch === undefined && ifAbsent ? { ...rest, ifAbsent } : rest),
    })),
  },
  {
    fault: "a put without retries loses its condition",
    check: "put without retries: has the outcomes of every put",
    make: broken((good) => ({
      put: (key, body, options = {}) => good.put(key, body, options.retries === "none" ? {} : options),
    })),
  },
  {
    fault: "the time of a put is in seconds",
    check: "put: size, etag and time agree in put, head, get and list",
    make: broken((good) => ({
      put: async (key, body, options) => {
        const info = await good.put(key, body, options);
        return { ...info, modifiedAt: info.modifiedAt / 1000 };
      },
    })),
  },
  {
    fault: "the store's clock tells seconds",
    check: "store: what it says that it can do, it can",
    make: broken(() => ({ serverTime: () => Date.now() / 1000 })),
  },
  {
    fault: "it does not say how large an object may be",
    check: "store: what it says that it can do, it can",
    make: broken((good) => ({ capabilities: { ...good.capabilities, maxObjectBytes: Number.NaN } })),
  },
  {
    fault: "put keeps the caller's buffer",
    check: "put: changing the passed bytes afterwards does not change the object",
    make: broken((good) => {
      const kept = new Map<string, Uint8Array>();
      return {
        async put(key, body, options) {
          const info = await good.put(key, body, options);
          if (body instanceof Uint8Array) kept.set(key, body);
          return info;
        },
        async get(key, options) {
          const object = await good.get(key, options);
          const bytes = options?.range === undefined ? kept.get(key) : undefined;
          if (bytes === undefined) return object;
          return withBody(object, async function* () {
            yield bytes.slice();
          });
        },
      };
    }),
  },
  {
    fault: "get gives out its own buffer",
    check: "put: changing returned bytes does not change the object",
    make: broken((good) => {
      const given = new Map<string, Uint8Array>();
      return {
        async get(key, options) {
          const object = await good.get(key, options);
          if (options?.range !== undefined) return object;
          const known = given.get(object.etag) ?? (await readBody(object.body));
          given.set(object.etag, known);
          return withBody(object, async function* () {
            yield known;
          });
        },
      };
    }),
  },
  {
    fault: "chunks of a stream are kept without a copy",
    check: "stream: a source may use one buffer for every chunk",
    make: broken((good) => ({
      async put(key, body, options) {
        if (body instanceof Uint8Array) return good.put(key, body, options);
        const chunks: Uint8Array[] = [];
        for await (const chunk of body) chunks.push(chunk);
        return good.put(key, join(chunks), options);
      },
    })),
  },
  {
    fault: "an abort does not stop a put whose source hangs",
    check: "abort: it frees a put whose source hangs",
    make: broken((good) => ({
      put: (key, body, { signal, ...rest } = {}) => {
        signal?.throwIfAborted();
        return good.put(key, body, rest);
      },
    })),
  },
  {
    fault: "the etag is the size",
    check: "put: the etag changes with the content, also at the same size",
    make: broken((good) => ({
      put: async (key, body, options) => {
        const info = await good.put(key, body, options);
        return { ...info, etag: String(info.size) };
      },
    })),
  },
  {
    fault: "a suffix is taken for a start",
    check: "get: ranges give exactly their bytes",
    make: broken((good) => ({
      get: (key, options = {}) => {
        const { range } = options;
        return good.get(key, range && "suffix" in range ? { ...options, range: { start: range.suffix } } : options);
      },
    })),
  },
  {
    fault: "the end of a range is inclusive",
    check: "get: ranges give exactly their bytes",
    make: broken((good) => ({
      get: (key, options = {}) => {
        const { range } = options;
        if (range === undefined || "suffix" in range || range.end === undefined) return good.get(key, options);
        return good.get(key, { ...options, range: { start: range.start, end: range.end + 1 } });
      },
    })),
  },
  {
    fault: "a body ends silently before its end",
    check: "put: an object of several MiB comes back whole",
    make: broken((good) => ({
      async get(key, options) {
        const object = await good.get(key, options);
        return withBody(object, async function* () {
          let pieces = 0;
          for await (const chunk of object.body) if (++pieces <= 8) yield chunk;
        });
      },
    })),
  },
  {
    fault: "a body reads what is stored at the moment, and ends as if complete when that is gone",
    check: "get: a body never ends as complete when its object is replaced or deleted",
    make: broken((good) => ({
      async get(key, options = {}) {
        const object = await good.get(key, options);
        if (options.range !== undefined) return object;
        return withBody(object, async function* () {
          for (let start = 0; start < object.size; start += 1_000_000) {
            const range = { start, end: start + 1_000_000 };
            const piece = await good.get(key, { ...options, range }).catch(() => undefined);
            if (piece === undefined) return;
            yield await readBody(piece.body);
          }
        });
      },
    })),
  },
  {
    fault: "a body read twice is empty the second time",
    check: "get: a body read twice gives its bytes again or throws",
    make: broken((good) => ({
      async get(key, options) {
        const object = await good.get(key, options);
        let used = false;
        return withBody(object, async function* () {
          if (used) return;
          used = true;
          yield* object.body;
        });
      },
    })),
  },
  {
    fault: "an absent object is an empty one",
    check: "get: an absent object is NotFoundError",
    make: broken((good) => ({
      get: (key, options) =>
        good.get(key, options).catch(async (error) => {
          if (!(error instanceof NotFoundError)) throw error;
          await good.put(key, new Uint8Array(0));
          return good.get(key);
        }),
    })),
  },
  {
    fault: "the listing is not sorted",
    check: "list: all keys come in the order of their bytes, through all folders",
    make: broken(resorted((a, b) => b.modifiedAt - a.modifiedAt || compareKeys(b.key, a.key))),
  },
  {
    fault: "the listing is in the order of UTF-16",
    check: "list: the order is that of UTF-8, not of UTF-16",
    make: broken(resorted((a, b) => (a.key < b.key ? -1 : 1))),
  },
  {
    fault: "the listing goes folder by folder, as if a/b came before a-b",
    check: "list: all keys come in the order of their bytes, through all folders",
    make: broken(resorted((a, b) => compareKeys(a.key.replaceAll("/", "\u0001"), b.key.replaceAll("/", "\u0001")))),
  },
  {
    fault: "a prefix is taken for a folder",
    check: "list: a prefix is plain text, not a folder",
    make: broken((good) => ({
      list: (prefix, options) => good.list(prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`, options),
    })),
  },
  {
    fault: "after is inclusive",
    check: "list: after leaves out the key itself and all before it",
    make: broken((good) => ({
      async *list(prefix, options = {}) {
        const { after, ...rest } = options;
        for await (const info of good.list(prefix, rest)) {
          if (after === undefined || compareKeys(info.key, after) >= 0) yield info;
        }
      },
    })),
  },
  {
    fault: "a listing ends after one page",
    check: "list: more keys than a page of any store come once each",
    make: broken((good) => ({
      async *list(prefix, options) {
        yield* (await all(good.list(prefix, options))).slice(0, 100);
      },
    })),
  },
  {
    fault: "a listing breaks when an object goes away during it",
    check: "list: objects deleted during a listing do not break it",
    make: broken((good) => ({
      async *list(prefix, options) {
        for (const info of await all(good.list(prefix, options))) {
          if ((await good.head(info.key)) === undefined) throw new StoreError("store_failed", info.key);
          yield info;
        }
      },
    })),
  },
  {
    fault: "delete throws when there is no such object",
    check: "delete: an absent object is no error",
    make: broken((good) => ({
      async delete(keys, options) {
        for (const key of typeof keys === "string" ? [keys] : keys) {
          if ((await good.head(key)) === undefined) throw new NotFoundError("object_not_found", key);
          await good.delete(key, options);
        }
      },
    })),
  },
  {
    fault: "delete takes a key for a prefix",
    check: "delete: keys that begin alike stay, and a folder's name deletes nothing",
    make: broken((good) => ({
      async delete(keys, options) {
        for (const key of typeof keys === "string" ? [keys] : keys) {
          await good.delete([key, ...(await all(good.list(key))).map((info) => info.key)], options);
        }
      },
    })),
  },
  {
    fault: "a bulk delete checks its keys one by one",
    check: "delete: an unsafe key among others deletes nothing",
    make: broken((good) => ({
      async delete(keys, options) {
        options?.signal?.throwIfAborted();
        for (const key of typeof keys === "string" ? [keys] : keys) await good.delete(key, options);
      },
    })),
  },
  {
    fault: "keys are percent-decoded",
    check: "keys: escapes are not decoded, so that they stay different",
    make: broken((good) => {
      const decode = (key: string): string =>
        key.replaceAll(/%(2[0-9a-f]|6[0-9a-f])/gi, (hex) => decodeURIComponent(hex));
      return {
        put: (key, body, options) => good.put(decode(key), body, options),
        get: (key, options) => good.get(decode(key), options),
        head: (key, options) => good.head(decode(key), options),
      };
    }),
  },
  {
    fault: "upper and lower case are silently one object",
    check: "keys: upper and lower case are different or refused",
    make: broken((good) => ({
      put: (key, body, { ifAbsent: _, ...rest } = {}) => good.put(key.toLowerCase(), body, rest),
      get: (key, options) => good.get(key.toLowerCase(), options),
    })),
  },
  {
    fault: "unsafe keys are made safe instead of being refused",
    check: "keys: unsafe keys are InvalidInputError in every call and create nothing",
    make: broken((good) => ({
      put: (key, body, options) => good.put(key.replaceAll("../", "") || "x", body, options),
    })),
  },
  {
    fault: "a closed store still answers",
    check: "close: every call of a closed store throws StoreError, and closing again is fine",
    make: broken(() => ({ [Symbol.asyncDispose]: async () => undefined })),
  },
];
