/** What any S3 answers about multipart uploads and about who asks. */

import { createHash } from "node:crypto";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { expect } from "vitest";
import { signedHeaders } from "../../src/index.js";
import type { Observation } from "./observations.js";
import { clientOf, type Observer, send } from "./observer.js";

/** The smallest that a part may be that is not the last: 5 MiB. */
const MIN_PART = 5 * 1024 * 1024;
const part = (byte: number, length = MIN_PART): Buffer => Buffer.alloc(length, byte);

async function begin({ client, bucket: Bucket }: Observer, Key: string): Promise<string> {
  return (await client.send(new CreateMultipartUploadCommand({ Bucket, Key }))).UploadId!;
}

async function upload(
  { client, bucket: Bucket }: Observer,
  Key: string,
  UploadId: string,
  PartNumber: number,
  Body: Buffer,
): Promise<{ PartNumber: number; ETag: string }> {
  const { ETag } = await client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }));
  return { PartNumber, ETag: ETag! };
}

function complete(
  { client, bucket: Bucket }: Observer,
  Key: string,
  UploadId: string,
  Parts: { PartNumber: number; ETag: string }[],
): Promise<unknown> {
  return client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
}

async function open({ client, bucket: Bucket }: Observer): Promise<(string | undefined)[]> {
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket }));
  return Uploads.map(({ Key }) => Key);
}

export const uploadObservations: readonly Observation[] = [
  {
    name: "parts in any order make one object in the order of their numbers, visible when complete",
    async run(observer) {
      const id = await begin(observer, "k");
      const third = await upload(observer, "k", id, 3, part(3, 7));
      const first = await upload(observer, "k", id, 1, part(1));
      expect((await observer.raw("GET", "/k")).status).toBe(404);
      expect(await open(observer)).toEqual(["k"]);
      await complete(observer, "k", id, [first, third]);
      const { status, bytes, headers } = await observer.raw("GET", "/k");
      expect(status).toBe(200);
      expect(bytes.equals(Buffer.concat([part(1), part(3, 7)]))).toBe(true);
      // MD5 of the parts' MD5s, and their count.
      const md5 = (data: Buffer): Buffer => createHash("md5").update(data).digest();
      const etag = createHash("md5")
        .update(Buffer.concat([md5(part(1)), md5(part(3, 7))]))
        .digest("hex");
      expect(headers.etag).toBe(`"${etag}-2"`);
      expect(await open(observer)).toEqual([]);
    },
  },
  {
    name: "a part that comes again replaces the one before",
    async run(observer) {
      const id = await begin(observer, "k");
      await upload(observer, "k", id, 1, Buffer.from("old"));
      const again = await upload(observer, "k", id, 1, Buffer.from("new"));
      await complete(observer, "k", id, [again]);
      expect((await observer.raw("GET", "/k")).bytes.toString()).toBe("new");
    },
  },
  {
    name: "parts are listed with number, size and ETag",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      const UploadId = await begin(observer, "k");
      await upload(observer, "k", UploadId, 2, Buffer.from("bb"));
      const { ETag } = await upload(observer, "k", UploadId, 1, Buffer.from("a"));
      const { Parts, IsTruncated } = await client.send(new ListPartsCommand({ Bucket, Key: "k", UploadId }));
      expect(Parts!.map(({ PartNumber, Size }) => [PartNumber, Size])).toEqual([
        [1, 1],
        [2, 2],
      ]);
      expect([Parts![0]!.ETag, IsTruncated]).toEqual([ETag, false]);
    },
  },
  {
    name: "a part below 5 MiB that is not the last: EntityTooSmall, and nothing is visible",
    async run(observer) {
      const id = await begin(observer, "k");
      const parts = [
        await upload(observer, "k", id, 1, part(1, MIN_PART - 1)),
        await upload(observer, "k", id, 2, part(2, 1)),
      ];
      await expect(complete(observer, "k", id, parts)).rejects.toMatchObject({ name: "EntityTooSmall" });
      expect((await observer.raw("HEAD", "/k")).status).toBe(404);
      expect(await open(observer)).toEqual(["k"]);
    },
  },
  {
    name: "parts that were not uploaded, or with another ETag: InvalidPart",
    async run(observer) {
      const id = await begin(observer, "k");
      const first = await upload(observer, "k", id, 1, part(1, 1));
      const absent = { PartNumber: 2, ETag: first.ETag };
      await expect(complete(observer, "k", id, [first, absent])).rejects.toMatchObject({ name: "InvalidPart" });
      const other = { PartNumber: 1, ETag: `"${"0".repeat(32)}"` };
      await expect(complete(observer, "k", id, [other])).rejects.toMatchObject({ name: "InvalidPart" });
    },
  },
  {
    name: "parts out of order: InvalidPartOrder",
    differs: { radosgw: "it sorts them" },
    async run(observer) {
      const id = await begin(observer, "k");
      const first = await upload(observer, "k", id, 1, part(1));
      const second = await upload(observer, "k", id, 2, part(2));
      await expect(complete(observer, "k", id, [second, first])).rejects.toMatchObject({ name: "InvalidPartOrder" });
    },
  },
  {
    name: "an upload without parts cannot be completed",
    async run(observer) {
      const id = await begin(observer, "k");
      await expect(complete(observer, "k", id, [])).rejects.toMatchObject({ name: "MalformedXML" });
      expect((await observer.raw("HEAD", "/k")).status).toBe(404);
    },
  },
  {
    name: "part numbers go from 1 to 10,000",
    differs: { radosgw: "it takes any" },
    async run(observer) {
      const id = await begin(observer, "k");
      for (const number of [0, 10_001])
        expect(await observer.raw("PUT", `/k?partNumber=${number}&uploadId=${id}`, { body: "x" })).toMatchObject({
          status: 400,
          code: "InvalidArgument",
        });
      expect((await observer.raw("PUT", `/k?partNumber=10000&uploadId=${id}`, { body: "x" })).status).toBe(200);
    },
  },
  {
    name: "after an abort the upload is gone, and takes no part",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      const UploadId = await begin(observer, "k");
      await upload(observer, "k", UploadId, 1, part(1, 1));
      await client.send(new AbortMultipartUploadCommand({ Bucket, Key: "k", UploadId }));
      expect(await open(observer)).toEqual([]);
      const gone = { name: "NoSuchUpload" };
      await expect(upload(observer, "k", UploadId, 2, part(2, 1))).rejects.toMatchObject(gone);
      const parts = client.send(new ListPartsCommand({ Bucket, Key: "k", UploadId }));
      await expect(parts).rejects.toMatchObject({ $metadata: { httpStatusCode: 404 } });
      expect((await observer.raw("HEAD", "/k")).status).toBe(404);
    },
  },
  {
    name: "a completion after an abort: NoSuchUpload",
    differs: { radosgw: "it answers 500 InternalError" },
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      const UploadId = await begin(observer, "k");
      const first = await upload(observer, "k", UploadId, 1, part(1, 1));
      await client.send(new AbortMultipartUploadCommand({ Bucket, Key: "k", UploadId }));
      const late = complete(observer, "k", UploadId, [first]);
      await expect(late).rejects.toMatchObject({ name: "NoSuchUpload" });
      expect((await observer.raw("HEAD", "/k")).status).toBe(404);
    },
  },
  {
    name: "an upload that never was: NoSuchUpload",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      const absent = { Bucket, Key: "k", UploadId: "2~absent" };
      const gone = { name: "NoSuchUpload" };
      await expect(upload(observer, "k", "2~absent", 1, part(1, 1))).rejects.toMatchObject(gone);
      await expect(client.send(new AbortMultipartUploadCommand(absent))).rejects.toMatchObject(gone);
    },
  },
  {
    name: "a completion is kept apart by If-None-Match",
    differs: { radosgw: "it does not look at it" },
    async run(observer) {
      const { client, bucket: Bucket, raw } = observer;
      const UploadId = await begin(observer, "k");
      const first = await upload(observer, "k", UploadId, 1, part(1, 1));
      await raw("PUT", "/k", { body: "other" });
      const MultipartUpload = { Parts: [first] };
      const input = { Bucket, Key: "k", UploadId, MultipartUpload, IfNoneMatch: "*" };
      const refused = client.send(new CompleteMultipartUploadCommand(input));
      await expect(refused).rejects.toMatchObject({ name: "PreconditionFailed" });
      expect((await raw("GET", "/k")).bytes.toString()).toBe("other");
    },
  },
  {
    name: "a completion gives the object's ETag",
    differs: { radosgw: "it leaves it empty" },
    async run(observer) {
      const id = await begin(observer, "k");
      const first = await upload(observer, "k", id, 1, part(1, 1));
      const { headers } = { headers: await complete(observer, "k", id, [first]) };
      expect(headers).toMatchObject({ ETag: (await observer.raw("HEAD", "/k")).headers.etag });
    },
  },
  {
    name: "uploads are listed by key, under a prefix",
    async run(observer) {
      const { client, bucket: Bucket } = observer;
      for (const key of ["b", "a/2", "a/1"]) await begin(observer, key);
      expect(await open(observer)).toEqual(["a/1", "a/2", "b"]);
      const { Uploads } = await client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: "a/" }));
      expect(Uploads!.map(({ Key }) => Key)).toEqual(["a/1", "a/2"]);
      expect(Math.abs(Uploads![0]!.Initiated!.getTime() - Date.now())).toBeLessThan(60_000);
    },
  },
  {
    name: "who is not known, or signs with another secret, is refused with 403",
    async run({ access, bucket }) {
      const url = `${access.endpoint}/${bucket}/k`;
      const refusal = async (other: Partial<typeof access>) => {
        const headers = signedHeaders("GET", new URL(url), { ...access, ...other });
        const { status, code } = await send("GET", url, headers);
        return [status, code];
      };
      expect(await refusal({ secretAccessKey: "wrong" })).toEqual([403, "SignatureDoesNotMatch"]);
      expect(await refusal({ accessKeyId: "nobody" })).toEqual([403, "InvalidAccessKeyId"]);
      expect(await send("GET", url)).toMatchObject({ status: 403, code: "AccessDenied" });
      await expect(
        begin({ client: clientOf({ ...access, secretAccessKey: "wrong" }), bucket } as Observer, "k"),
      ).rejects.toMatchObject({
        name: "SignatureDoesNotMatch",
      });
    },
  },
  {
    name: "a header that was changed on its way is refused",
    async run({ raw }) {
      const answer = await raw("PUT", "/k", {
        headers: { "x-amz-meta-a": "1" },
        tamper: { "x-amz-meta-a": "2" },
        body: "x",
      });
      expect(answer).toMatchObject({ status: 403, code: "SignatureDoesNotMatch" });
    },
  },
  {
    name: "a clock that is more than 15 minutes off is refused",
    async run({ raw }) {
      for (const minutes of [-20, 20])
        expect(await raw("GET", "/k", { time: new Date(Date.now() + minutes * 60_000) })).toMatchObject({
          status: 403,
          code: "RequestTimeTooSkewed",
        });
      expect((await raw("GET", "/k", { time: new Date(Date.now() + 10 * 60_000) })).status).toBe(404);
    },
  },
  {
    name: "the server's time is in every answer",
    async run({ raw }) {
      const { headers } = await raw("GET", "/k");
      expect(Math.abs(Date.parse(headers.date as string) - Date.now())).toBeLessThan(60_000);
    },
  },
];
