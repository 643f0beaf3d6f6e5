/** What any S3 answers about single objects. Expected values are from AWS's API reference and RFC 9110. */

import { createHash } from "node:crypto";
import { DeleteObjectsCommand, GetObjectCommand, HeadObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { expect } from "vitest";
import type { Observation } from "./observations.js";
import type { Observer } from "./observer.js";

const md5 = (text: string): string => createHash("md5").update(text).digest("hex");
const ABSENT = { "if-none-match": "*" };

/** Status, bytes and Content-Range of a GET with a range. */
async function ranged({ raw }: Observer, path: string, range: string): Promise<unknown[]> {
  const { status, headers, bytes } = await raw("GET", path, { headers: { range } });
  return [status, bytes.toString("latin1"), headers["content-range"]];
}

export const objectObservations: readonly Observation[] = [
  {
    name: "a put gives the MD5 as ETag, and the object is there with all that was said of it",
    async run({ client, bucket: Bucket }) {
      const Metadata = { snapshot: "12" };
      const put = { Bucket, Key: "k", Body: "words", ContentType: "text/x-test", Metadata };
      expect((await client.send(new PutObjectCommand(put))).ETag).toBe(`"${md5("words")}"`);
      const got = await client.send(new GetObjectCommand({ Bucket, Key: "k" }));
      expect(await got.Body!.transformToString()).toBe("words");
      const facts = { ETag: `"${md5("words")}"`, ContentLength: 5, ContentType: "text/x-test", Metadata };
      expect(got).toMatchObject({ ...facts, AcceptRanges: "bytes" });
      const head = await client.send(new HeadObjectCommand({ Bucket, Key: "k" }));
      expect(head).toMatchObject(facts);
      expect(Math.abs(head.LastModified!.getTime() - Date.now())).toBeLessThan(60_000);
      expect(head.LastModified!.getMilliseconds()).toBe(0);
    },
  },
  {
    name: "If-None-Match: * creates once and answers 412 then",
    async run({ raw }) {
      expect((await raw("PUT", "/k", { headers: ABSENT, body: "first" })).status).toBe(200);
      expect(await raw("PUT", "/k", { headers: ABSENT, body: "second" })).toMatchObject({
        status: 412,
        code: "PreconditionFailed",
      });
      expect((await raw("GET", "/k")).bytes.toString()).toBe("first");
      // What was deleted can be created again.
      await raw("DELETE", "/k");
      expect((await raw("PUT", "/k", { headers: ABSENT, body: "third" })).status).toBe(200);
    },
  },
  {
    name: "of racing creations one wins",
    async run({ raw }) {
      for (let round = 0; round < 5; round++) {
        const put = (body: string) => raw("PUT", `/race-${round}`, { headers: ABSENT, body });
        const answers = await Promise.all(["a", "b", "c", "d", "e", "f"].map(put));
        const statuses = answers.map(({ status }) => status).sort();
        expect(statuses.slice(0, 1)).toEqual([200]);
        // 409 ConditionalRequestConflict is the other answer that S3 has for a loser.
        for (const status of statuses.slice(1)) expect([409, 412]).toContain(status);
        const winner = answers.findIndex(({ status }) => status === 200);
        expect((await raw("GET", `/race-${round}`)).bytes.toString()).toBe("abcdef"[winner]);
      }
    },
  },
  {
    name: "If-Match on a put, not quoted, replaces only what it names",
    async run({ raw }) {
      await raw("PUT", "/k", { body: "one" });
      const replace = (tag: string, body: string) => raw("PUT", "/k", { headers: { "if-match": tag }, body });
      expect(await replace(md5("other"), "two")).toMatchObject({ status: 412, code: "PreconditionFailed" });
      expect((await replace(md5("one"), "two")).status).toBe(200);
      expect((await replace(md5("one"), "three")).status).toBe(412);
      expect((await raw("GET", "/k")).bytes.toString()).toBe("two");
    },
  },
  {
    name: "If-Match on a put, quoted, replaces only what it names",
    differs: { radosgw: "it answers 412 to every If-Match in quotes" },
    async run({ raw }) {
      await raw("PUT", "/k", { body: "one" });
      expect((await raw("PUT", "/k", { headers: { "if-match": `"${md5("one")}"` }, body: "two" })).status).toBe(200);
      expect((await raw("GET", "/k")).bytes.toString()).toBe("two");
    },
  },
  {
    name: "conditions of reads",
    async run({ raw }) {
      const tag = `"${md5("words")}"`;
      await raw("PUT", "/k", { body: "words" });
      const get = (headers: Record<string, string>) => raw("GET", "/k", { headers });
      expect(await get({ "if-none-match": tag })).toMatchObject({ status: 304, bytes: Buffer.alloc(0) });
      expect((await get({ "if-none-match": '"other"' })).status).toBe(200);
      expect((await get({ "if-match": tag })).status).toBe(200);
      expect(await get({ "if-match": '"other"' })).toMatchObject({ status: 412, code: "PreconditionFailed" });
      expect((await get({ "if-modified-since": "Wed, 01 Jan 2020 00:00:00 GMT" })).status).toBe(200);
      expect((await get({ "if-unmodified-since": "Wed, 01 Jan 2020 00:00:00 GMT" })).status).toBe(412);
    },
  },
  {
    name: "ranges: from, to, both, suffix, cut at the end",
    async run(observer) {
      await observer.raw("PUT", "/k", { body: "0123456789" });
      expect(await ranged(observer, "/k", "bytes=2-4")).toEqual([206, "234", "bytes 2-4/10"]);
      expect(await ranged(observer, "/k", "bytes=0-0")).toEqual([206, "0", "bytes 0-0/10"]);
      expect(await ranged(observer, "/k", "bytes=7-")).toEqual([206, "789", "bytes 7-9/10"]);
      expect(await ranged(observer, "/k", "bytes=7-99")).toEqual([206, "789", "bytes 7-9/10"]);
      expect(await ranged(observer, "/k", "bytes=-3")).toEqual([206, "789", "bytes 7-9/10"]);
      expect(await ranged(observer, "/k", "bytes=-99")).toEqual([206, "0123456789", "bytes 0-9/10"]);
    },
  },
  {
    name: "ranges beyond the end are refused with 416",
    async run({ raw }) {
      await raw("PUT", "/k", { body: "0123456789" });
      await raw("PUT", "/empty", { body: "" });
      const refused = { status: 416, code: "InvalidRange" };
      for (const range of ["bytes=10-", "bytes=10-20"])
        expect(await raw("GET", "/k", { headers: { range } })).toMatchObject(refused);
      expect(await raw("GET", "/empty", { headers: { range: "bytes=0-" } })).toMatchObject(refused);
    },
  },
  {
    name: "an empty object has a length of 0 and no bytes",
    async run({ raw }) {
      expect((await raw("PUT", "/k", { body: "" })).status).toBe(200);
      for (const method of ["GET", "HEAD"]) {
        const { status, headers, bytes } = await raw(method, "/k");
        expect([status, headers["content-length"], bytes.length]).toEqual([200, "0", 0]);
      }
    },
  },
  {
    name: "what is absent: an error document for GET, no body for HEAD, success for DELETE",
    async run({ raw, client, bucket: Bucket }) {
      expect(await raw("GET", "/none")).toMatchObject({ status: 404, code: "NoSuchKey" });
      expect(await raw("HEAD", "/none")).toMatchObject({ status: 404, bytes: Buffer.alloc(0) });
      expect(await raw("DELETE", "/none")).toMatchObject({ status: 204, bytes: Buffer.alloc(0) });
      const head = client.send(new HeadObjectCommand({ Bucket, Key: "none" }));
      await expect(head).rejects.toMatchObject({ name: "NotFound" });
    },
  },
  {
    name: "a bucket that is absent: NoSuchBucket",
    async run({ client }) {
      const to = { Bucket: "eider-there-is-no-such", Key: "k" };
      await expect(client.send(new GetObjectCommand(to))).rejects.toMatchObject({ name: "NoSuchBucket" });
      await expect(client.send(new PutObjectCommand({ ...to, Body: "x" }))).rejects.toMatchObject({
        name: "NoSuchBucket",
      });
    },
  },
  {
    name: "keys are literal: encoded once, decoded once",
    async run({ client, raw, bucket: Bucket }) {
      const keys = ["in/t=1/a:b+c", "in/q?x=1", "in/h#1", "in/p%20q", "in/p q", "in/ü/😀", "in/a&b<c>'\"(d)*!~"];
      for (const Key of keys) await client.send(new PutObjectCommand({ Bucket, Key, Body: Key }));
      for (const Key of keys) {
        const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
        expect(await Body!.transformToString()).toBe(Key);
      }
      // On the wire: %2520 is "%20", and a plus is a plus.
      expect((await raw("GET", "/in/p%2520q")).bytes.toString()).toBe("in/p%20q");
      expect((await raw("GET", "/in/p%20q")).bytes.toString()).toBe("in/p q");
      expect((await raw("GET", "/in/t%3D1/a%3Ab%2Bc")).bytes.toString()).toBe("in/t=1/a:b+c");
    },
  },
  {
    name: "many deletes at once, of what is there and what is not",
    async run({ client, raw, bucket: Bucket }) {
      const keys = ["a&b", "c d", "e<f>"];
      for (const Key of keys) await client.send(new PutObjectCommand({ Bucket, Key, Body: "x" }));
      const Objects = [...keys, "absent"].map((Key) => ({ Key }));
      const deleted = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
      expect(deleted.Deleted!.map(({ Key }) => Key).sort()).toEqual(["a&b", "absent", "c d", "e<f>"]);
      for (const path of ["/a%26b", "/c%20d", "/e%3Cf%3E"]) expect((await raw("GET", path)).status).toBe(404);
    },
  },
  {
    name: "many deletes at once need a checksum",
    differs: { radosgw: "it needs none" },
    async run({ raw }) {
      await raw("PUT", "/k", { body: "x" });
      const body = "<Delete><Object><Key>k</Key></Object></Delete>";
      expect(await raw("POST", "?delete", { body })).toMatchObject({ status: 400, code: "InvalidRequest" });
      expect((await raw("GET", "/k")).status).toBe(200);
      const headers = { "content-md5": createHash("md5").update(body).digest("base64") };
      expect((await raw("POST", "?delete", { headers, body })).status).toBe(200);
      expect((await raw("GET", "/k")).status).toBe(404);
    },
  },
  {
    name: "quiet deletes name nothing",
    async run({ client, bucket: Bucket }) {
      await client.send(new PutObjectCommand({ Bucket, Key: "k", Body: "x" }));
      const Delete = { Objects: [{ Key: "k" }], Quiet: true };
      const { Deleted, Errors } = await client.send(new DeleteObjectsCommand({ Bucket, Delete }));
      expect([Deleted ?? [], Errors ?? []]).toEqual([[], []]);
    },
  },
  {
    name: "more than 1,000 deletes at once are refused",
    async run({ raw }) {
      const objects = Array.from({ length: 1001 }, (_, n) => `<Object><Key>k${n}</Key></Object>`);
      const body = `<Delete>${objects.join("")}</Delete>`;
      const headers = { "content-md5": createHash("md5").update(body).digest("base64") };
      expect((await raw("POST", "?delete", { headers, body })).status).toBe(400);
    },
  },
  {
    name: "a body that does not fit its Content-MD5 is refused",
    async run({ raw }) {
      const headers = { "content-md5": createHash("md5").update("other").digest("base64") };
      expect(await raw("PUT", "/k", { headers, body: "words" })).toMatchObject({ status: 400, code: "BadDigest" });
      expect((await raw("HEAD", "/k")).status).toBe(404);
    },
  },
  {
    name: "a body that does not fit its signed SHA-256 is refused",
    async run({ raw }) {
      const headers = { "x-amz-content-sha256": createHash("sha256").update("other").digest("hex") };
      const answer = await raw("PUT", "/k", { headers, body: "words" });
      expect(answer).toMatchObject({ status: 400, code: "XAmzContentSHA256Mismatch" });
      expect((await raw("HEAD", "/k")).status).toBe(404);
    },
  },
  {
    name: "a body that does not fit its CRC32 is refused",
    differs: { radosgw: "it takes checksums and does not look at them" },
    async run({ raw }) {
      // CRC32 of "123456789" is cbf43926: the check value of its specification.
      const headers = { "x-amz-checksum-crc32": Buffer.from("cbf43926", "hex").toString("base64") };
      expect((await raw("PUT", "/k", { headers, body: "123456789" })).status).toBe(200);
      expect(await raw("PUT", "/k", { headers, body: "123456780" })).toMatchObject({ status: 400, code: "BadDigest" });
    },
  },
  {
    name: "a body of unknown length is refused",
    async run({ raw }) {
      const { status } = await raw("PUT", "/k", { body: "words", chunked: true });
      expect([411, 501]).toContain(status);
      expect((await raw("HEAD", "/k")).status).toBe(404);
    },
  },
];
