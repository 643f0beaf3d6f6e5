/** What any S3 answers to listings. */

import { ListObjectsV2Command, type ListObjectsV2CommandInput, PutObjectCommand } from "@aws-sdk/client-s3";
import { expect } from "vitest";
import type { Observation } from "./observations.js";
import type { Observer } from "./observer.js";

async function fill({ client, bucket: Bucket }: Observer, keys: readonly string[]): Promise<void> {
  // The client has 50 connections, and warns of more that wait for one.
  for (let at = 0; at < keys.length; at += 50) {
    const some = keys.slice(at, at + 50);
    await Promise.all(some.map((Key) => client.send(new PutObjectCommand({ Bucket, Key, Body: Key }))));
  }
}

async function keysOf(
  { client, bucket: Bucket }: Observer,
  input: Partial<ListObjectsV2CommandInput> = {},
): Promise<(string | undefined)[]> {
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, ...input }));
  return Contents.map(({ Key }) => Key);
}

export const listObservations: readonly Observation[] = [
  {
    name: "keys come in the order of their UTF-8 bytes",
    async run(observer) {
      // U+FF5E sorts before U+1F600 by bytes, and after it by UTF-16 units, as JavaScript sorts.
      const sorted = ["B", "a", "a!", "a-b", "a/b", "a0", "b", "é", "～", "😀"];
      await fill(observer, [...sorted].reverse());
      expect(await keysOf(observer)).toEqual(sorted);
    },
  },
  {
    name: "a prefix is a plain string, and an empty bucket has nothing",
    async run(observer) {
      expect(await keysOf(observer)).toEqual([]);
      await fill(observer, ["t", "t/1", "t/2", "t2/1", "u"]);
      expect(await keysOf(observer, { Prefix: "t" })).toEqual(["t", "t/1", "t/2", "t2/1"]);
      expect(await keysOf(observer, { Prefix: "t/" })).toEqual(["t/1", "t/2"]);
      expect(await keysOf(observer, { Prefix: "t/1/" })).toEqual([]);
    },
  },
  {
    name: "start-after is exclusive, and need be no key",
    async run(observer) {
      await fill(observer, ["a", "b", "p/1", "p/2", "p/3"]);
      expect(await keysOf(observer, { StartAfter: "b" })).toEqual(["p/1", "p/2", "p/3"]);
      expect(await keysOf(observer, { StartAfter: "p/10" })).toEqual(["p/2", "p/3"]);
      expect(await keysOf(observer, { Prefix: "p/", StartAfter: "a" })).toEqual(["p/1", "p/2", "p/3"]);
      expect(await keysOf(observer, { Prefix: "p/", StartAfter: "p/2" })).toEqual(["p/3"]);
      expect(await keysOf(observer, { Prefix: "a", StartAfter: "b" })).toEqual([]);
    },
  },
  {
    name: "pages follow each other without a gap or a repeat, and count",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      const keys = Array.from({ length: 7 }, (_, n) => `k/${n}`);
      await fill(observer, keys);
      const found: string[] = [];
      const counts: unknown[] = [];
      let ContinuationToken: string | undefined;
      do {
        const page = await client.send(
          new ListObjectsV2Command({ Bucket, MaxKeys: 3, ...(ContinuationToken && { ContinuationToken }) }),
        );
        counts.push([page.KeyCount, page.MaxKeys, page.IsTruncated]);
        found.push(...page.Contents!.map(({ Key }) => Key!));
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
      expect(found).toEqual(keys);
      expect(counts).toEqual([
        [3, 3, true],
        [3, 3, true],
        [1, 3, false],
      ]);
    },
  },
  {
    name: "a page that ends with the last key is not cut",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      await fill(observer, ["a", "b"]);
      const page = await client.send(new ListObjectsV2Command({ Bucket, MaxKeys: 2 }));
      expect([page.IsTruncated, page.NextContinuationToken]).toEqual([false, undefined]);
    },
  },
  {
    name: "no more than 1,000 keys at once, whatever is asked for",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      await fill(
        observer,
        Array.from({ length: 1001 }, (_, n) => `k${String(n).padStart(4, "0")}`),
      );
      const page = await client.send(new ListObjectsV2Command({ Bucket, MaxKeys: 5000 }));
      expect([page.Contents!.length, page.KeyCount, page.IsTruncated]).toEqual([1000, 1000, true]);
      const rest = await client.send(
        new ListObjectsV2Command({ Bucket, ContinuationToken: page.NextContinuationToken! }),
      );
      expect(rest.Contents!.map(({ Key }) => Key)).toEqual(["k1000"]);
    },
  },
  {
    name: "size, ETag and time of each key",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      await fill(observer, ["12345"]);
      const { Contents } = await client.send(new ListObjectsV2Command({ Bucket }));
      // MD5 of "12345", by md5sum.
      expect(Contents).toMatchObject([{ Key: "12345", Size: 5, ETag: '"827ccb0eea8a706c4c34a16891f84e7b"' }]);
      expect(Math.abs(Contents![0]!.LastModified!.getTime() - Date.now())).toBeLessThan(60_000);
    },
  },
  {
    name: "awkward keys come out as they went in",
    async run(observer) {
      const keys = ["a&b", "c d", "e<f>", "g+h", "i%20j", "k\"l'", "ü😀"];
      await fill(observer, keys);
      expect(await keysOf(observer)).toEqual(keys);
    },
  },
  {
    name: "encoding-type=url encodes as forms do",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      const keys = ["a/b c", "c+d", "e%f", "g&h", "ü"];
      await fill(observer, keys);
      const page = await client.send(new ListObjectsV2Command({ Bucket, EncodingType: "url" }));
      expect(page.EncodingType).toBe("url");
      // Whether a slash is encoded, and how a space is, is the server's choice.
      const listed = page.Contents!.map(({ Key }) => Key!);
      expect(listed.slice(1)).toEqual(["c%2Bd", "e%25f", "g%26h", "%C3%BC"]);
      expect(new URLSearchParams(`key=${listed[0]}`).get("key")).toBe("a/b c");
    },
  },
  {
    name: "a delimiter makes groups of keys",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      await fill(observer, ["a", "p/1", "p/2", "q/1", "r"]);
      const list = async (input: Partial<ListObjectsV2CommandInput>) => {
        const page = await client.send(new ListObjectsV2Command({ Bucket, Delimiter: "/", ...input }));
        return [page.Contents?.map(({ Key }) => Key) ?? [], page.CommonPrefixes?.map(({ Prefix }) => Prefix) ?? []];
      };
      expect(await list({})).toEqual([
        ["a", "r"],
        ["p/", "q/"],
      ]);
      expect(await list({ Prefix: "p/" })).toEqual([["p/1", "p/2"], []]);
    },
  },
];
