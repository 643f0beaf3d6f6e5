/** What only the fake does: modes of other stores, faults by script, and its log. The client is AWS's own. */

import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { describe, expect, onTestFinished, test } from "vitest";
import { FakeS3, type FakeS3Options } from "../src/index.js";
import { clientOf, type Observer, observe, send } from "./support/observer.js";

interface Setting extends Observer {
  readonly s3: FakeS3;
}

async function start(options: FakeS3Options = {}): Promise<Setting> {
  const s3 = await FakeS3.start(options);
  onTestFinished(() => s3.stop());
  return { s3, ...observe(s3, await s3.makeBucket()) };
}

/** AWS's client with its own defaults: checksums wherever it can. */
function defaultClient({ s3 }: Setting, config: S3ClientConfig = {}): S3Client {
  const { endpoint, region, accessKeyId, secretAccessKey } = s3;
  const credentials = { accessKeyId, secretAccessKey };
  return new S3Client({ endpoint, region, credentials, forcePathStyle: true, maxAttempts: 1, ...config });
}

async function multipart(
  { client, bucket: Bucket }: Observer,
  bodies: readonly (string | Uint8Array)[],
): Promise<{ UploadId: string; input: ConstructorParameters<typeof CompleteMultipartUploadCommand>[0] }> {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: "k" }));
  const Parts: { PartNumber: number; ETag: string }[] = [];
  for (const [index, Body] of bodies.entries()) {
    const PartNumber = index + 1;
    const { ETag } = await client.send(new UploadPartCommand({ Bucket, Key: "k", UploadId, PartNumber, Body }));
    Parts.push({ PartNumber, ETag: ETag! });
  }
  return { UploadId: UploadId!, input: { Bucket, Key: "k", UploadId, MultipartUpload: { Parts } } };
}

describe("checksums", () => {
  test.each(["CRC32", "CRC32C", "SHA1", "SHA256"] as const)(
    "%s of AWS's client hold, in headers and trailers",
    async (ChecksumAlgorithm) => {
      const setting = await start();
      const client = defaultClient(setting);
      const put = { Bucket: setting.bucket, ChecksumAlgorithm };
      await client.send(new PutObjectCommand({ ...put, Key: "whole", Body: "words" }));
      const Body = Readable.from([Buffer.from("wo"), Buffer.from("rds")]);
      await client.send(new PutObjectCommand({ ...put, Key: "stream", Body, ContentLength: 5 }));
      expect(
        [...setting.s3.objects(setting.bucket)].map(([key, bytes]) => [key, Buffer.from(bytes).toString()]),
      ).toEqual([
        ["stream", "words"],
        ["whole", "words"],
      ]);
      const [whole, streamed] = setting.s3.log.of("PutObject");
      expect(whole!.headers[`x-amz-checksum-${ChecksumAlgorithm.toLowerCase()}`]).toBeDefined();
      expect(streamed!.headers["x-amz-trailer"]).toBe(`x-amz-checksum-${ChecksumAlgorithm.toLowerCase()}`);
      // The client compares what comes back: it throws where the body is not what the checksum says.
      const got = await client.send(new GetObjectCommand({ Bucket: setting.bucket, Key: "whole" }));
      expect(await got.Body!.transformToString()).toBe("words");
    },
  );

  test("a store that knows none answers 501 to AWS's defaults, and takes what needs none", async () => {
    const setting = await start({ checksums: "rejects" });
    const { bucket: Bucket, s3 } = setting;
    const put = new PutObjectCommand({ Bucket, Key: "k", Body: "x" });
    await expect(defaultClient(setting).send(put)).rejects.toMatchObject({ name: "NotImplemented" });
    expect(s3.log.requests[0]).toMatchObject({ status: 501 });
    await setting.client.send(put);
    expect([...s3.objects(Bucket).keys()]).toEqual(["k"]);
    // Even so the client adds a CRC32 to this one (D42).
    const Delete = { Objects: [{ Key: "k" }] };
    const deletion = setting.client.send(new DeleteObjectsCommand({ Bucket, Delete }));
    await expect(deletion).rejects.toMatchObject({ name: "NotImplemented" });
    const body = "<Delete><Object><Key>k</Key></Object></Delete>";
    const headers = { "content-md5": createHash("md5").update(body).digest("base64") };
    expect((await setting.raw("POST", "?delete", { headers, body })).status).toBe(200);
    expect(s3.objects(Bucket).size).toBe(0);
  });

  test("a store that requires one refuses what has none", async () => {
    const setting = await start({ checksums: "requires" });
    const put = new PutObjectCommand({ Bucket: setting.bucket, Key: "k", Body: "x" });
    await expect(setting.client.send(put)).rejects.toMatchObject({ name: "InvalidRequest" });
    await defaultClient(setting).send(put);
    expect([...setting.s3.objects(setting.bucket).keys()]).toEqual(["k"]);
  });

  // The check values of CRC-32 and CRC-32C are in the catalogue of CRC algorithms; the others are from sha1sum and sha256sum.
  test.each([
    ["crc32", "cbf43926"],
    ["crc32c", "e3069283"],
    ["sha1", "f7c3bc1d808e04732adf679965ccc34ca7ae3441"],
    ["sha256", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"],
  ])("%s is the one of the specification", async (algorithm, hex) => {
    const { raw } = await start();
    const headers = { [`x-amz-checksum-${algorithm}`]: Buffer.from(hex, "hex").toString("base64") };
    expect((await raw("PUT", "/k", { headers, body: "123456789" })).status).toBe(200);
    expect(await raw("PUT", "/k", { headers, body: "123456780" })).toMatchObject({ status: 400, code: "BadDigest" });
  });
});

describe("stores that are otherwise", () => {
  const MiB = (n: number): Buffer => Buffer.alloc(n << 20);

  test("equal parts: all but the last have one size, and the last is not larger", async () => {
    const setting = await start({ equalParts: true });
    const finish = async (...sizes: number[]): Promise<unknown> => {
      const { input } = await multipart(setting, sizes.map(MiB));
      return setting.client.send(new CompleteMultipartUploadCommand(input));
    };
    for (const sizes of [
      [5, 6, 1],
      [6, 5, 1],
      [5, 6],
    ])
      await expect(finish(...sizes)).rejects.toMatchObject({ name: "InvalidPart", message: /same length/ });
    await finish(5, 5, 1);
    await finish(6);
    await finish(5, 5);
  });

  test("limits can be small", async () => {
    const setting = await start({ limits: { minPartBytes: 3, maxParts: 2, maxPutBytes: 8, maxKeys: 2 } });
    const { client, bucket: Bucket } = setting;
    const put = (Body: string) => client.send(new PutObjectCommand({ Bucket, Key: Body, Body }));
    await expect(put("123456789")).rejects.toMatchObject({ name: "EntityTooLarge" });
    await expect(multipart(setting, ["abc", "abc", "abc"])).rejects.toMatchObject({ name: "InvalidArgument" });
    const short = await multipart(setting, ["ab", "c"]);
    await expect(client.send(new CompleteMultipartUploadCommand(short.input))).rejects.toMatchObject({
      name: "EntityTooSmall",
    });
    for (const body of ["1", "2", "3"]) await put(body);
    expect((await setting.raw("GET", "?list-type=2")).bytes.toString()).toMatch(/<IsTruncated>true/);
  });

  test("a store that ignores conditions lets every creation win; one that refuses them says so", async () => {
    const put = (setting: Setting, Body: string) =>
      setting.client.send(new PutObjectCommand({ Bucket: setting.bucket, Key: "k", Body, IfNoneMatch: "*" }));
    const careless = await start({ conditions: "ignores" });
    await put(careless, "1");
    await put(careless, "2");
    const honest = await start({ conditions: "refuses" });
    await expect(put(honest, "1")).rejects.toMatchObject({ name: "NotImplemented" });
  });

  test("anonymous requests are served where they may be", async () => {
    const { s3, bucket } = await start({ anonymous: true });
    const url = `${s3.endpoint}/${bucket}/k`;
    expect((await send("PUT", url, { "content-length": "1" }, "x")).status).toBe(200);
    expect((await send("GET", url)).bytes.toString()).toBe("x");
  });

  test("a server whose clock is an hour ahead says its time and refuses ours", async () => {
    const { raw, client, bucket: Bucket, s3 } = await start({ clock: () => Date.now() + 3_600_000 });
    const { headers, code } = await raw("GET", "/k");
    expect(code).toBe("RequestTimeTooSkewed");
    expect(Date.parse(headers.date as string) - Date.now()).toBeGreaterThan(3_500_000);
    // AWS's client learns from the refusal what time it is there.
    const patient = defaultClient({ s3 } as Setting, { maxAttempts: 2 });
    await patient.send(new PutObjectCommand({ Bucket, Key: "k", Body: "x" }));
    const head = await patient.send(new HeadObjectCommand({ Bucket, Key: "k" }));
    expect(head.LastModified!.getTime() - Date.now()).toBeGreaterThan(3_500_000);
    client.destroy();
  });
});

describe("faults", () => {
  const put = ({ client, bucket: Bucket }: Observer, Body = "x", Key = "k") =>
    client.send(new PutObjectCommand({ Bucket, Key, Body }));

  test("an error before the effect: with a document, without one, with headers, the first two times", async () => {
    const setting = await start();
    const { s3, raw } = setting;
    s3.script(
      {
        match: { operation: "PutObject", nth: [1, 2] },
        do: { effect: "never", answer: { status: 503, code: "SlowDown", headers: { "retry-after": "2" } } },
      },
      { match: { operation: "PutObject", nth: 3 }, do: { effect: "never", answer: { status: 503 } } },
    );
    for (let n = 0; n < 2; n++) await expect(put(setting)).rejects.toMatchObject({ name: "SlowDown" });
    expect((await raw("PUT", "/k", { body: "x" })).bytes.length).toBe(0);
    expect(s3.objects(setting.bucket).size).toBe(0);
    await put(setting);
    expect(s3.objects(setting.bucket).size).toBe(1);
    expect(s3.log.of("PutObject").map(({ status, faulted }) => [status, faulted])).toEqual([
      [503, true],
      [503, true],
      [503, true],
      [200, false],
    ]);
    s3.script({
      match: { nth: 1 },
      do: { effect: "never", answer: { status: 503, code: "SlowDown", headers: { "retry-after": "2" } } },
    });
    expect((await raw("GET", "/k")).headers["retry-after"]).toBe("2");
  });

  test("a connection that breaks before the effect, and after it: the answer is lost", async () => {
    const setting = await start();
    const { s3 } = setting;
    s3.script(
      { match: { key: "before" }, do: { effect: "never", answer: "reset" } },
      { match: { key: "after" }, do: { answer: "reset" } },
    );
    await expect(put(setting, "x", "before")).rejects.toMatchObject({ code: "ECONNRESET" });
    await expect(put(setting, "x", "after")).rejects.toMatchObject({ code: "ECONNRESET" });
    expect([...s3.objects(setting.bucket).keys()]).toEqual(["after"]);
    expect(s3.log.requests.map(({ status }) => status)).toEqual([undefined, undefined]);
  });

  test("a request that is cut in its body has no effect", async () => {
    const setting = await start();
    setting.s3.script({ match: { operation: "PutObject" }, do: { cutRequestAt: 1 << 20 } });
    const cut = put(setting, "x".repeat(4 << 20));
    await expect(cut).rejects.toMatchObject({ code: expect.stringMatching(/ECONNRESET|EPIPE/) });
    await setting.s3.settled();
    expect(setting.s3.objects(setting.bucket).size).toBe(0);
  });

  test("412 and 409 as an answer to what succeeded", async () => {
    const setting = await start();
    setting.s3.script(
      { match: { key: "a" }, do: { answer: { status: 412, code: "PreconditionFailed" } } },
      { match: { key: "b" }, do: { answer: { status: 409, code: "ConditionalRequestConflict" } } },
    );
    await expect(put(setting, "x", "a")).rejects.toMatchObject({ name: "PreconditionFailed" });
    await expect(put(setting, "x", "b")).rejects.toMatchObject({ name: "ConditionalRequestConflict" });
    expect([...setting.s3.objects(setting.bucket).keys()]).toEqual(["a", "b"]);
  });

  test("an effect that lands after the client was told that it failed", async () => {
    const setting = await start();
    let release: () => void = () => undefined;
    const after = new Promise<void>((resolve) => {
      release = resolve;
    });
    setting.s3.script({
      match: { operation: "PutObject" },
      do: { effect: { after }, answer: { status: 500, code: "InternalError" } },
    });
    await expect(put(setting)).rejects.toMatchObject({ name: "InternalError" });
    expect(setting.s3.objects(setting.bucket).size).toBe(0);
    release();
    await setting.s3.settled();
    expect(setting.s3.objects(setting.bucket).size).toBe(1);
  });

  test("a late effect keeps the conditions of the moment when it lands", async () => {
    const setting = await start();
    const { s3, client, bucket: Bucket } = setting;
    s3.script({ match: { nth: 1 }, do: { effect: { after: 50 }, answer: "reset" } });
    const create = (Body: string) => client.send(new PutObjectCommand({ Bucket, Key: "k", Body, IfNoneMatch: "*" }));
    await expect(create("late")).rejects.toMatchObject({ code: "ECONNRESET" });
    await create("early");
    await s3.settled();
    expect(Buffer.from(s3.objects(Bucket).get("k")!).toString()).toBe("early");
  });

  test("silence until the client goes, with and without the effect; a client that leaves early has put it all the same", async () => {
    const setting = await start();
    const { client, bucket: Bucket, s3 } = setting;
    s3.script(
      { match: { key: "hang" }, do: { answer: "hang" } },
      { match: { key: "never" }, do: { effect: "never", answer: "hang" } },
      { match: { key: "slow" }, do: { wait: 2000 } },
    );
    for (const Key of ["hang", "never", "slow"]) {
      const leave = new AbortController();
      const hanging = client.send(new PutObjectCommand({ Bucket, Key, Body: "x" }), { abortSignal: leave.signal });
      const left = expect(hanging).rejects.toMatchObject({ name: "AbortError" });
      await expect
        .poll(() => s3.log.of("PutObject").some(({ key, bytesIn }) => key === Key && bytesIn > 0), { timeout: 30_000 })
        .toBe(true);
      leave.abort();
      await left;
    }
    await s3.settled();
    expect([...s3.objects(Bucket).keys()]).toEqual(["hang", "slow"]);
  });

  test("a body that is cut: fewer bytes than its length", async () => {
    const setting = await start();
    await put(setting, "0123456789");
    setting.s3.script({ match: { operation: "GetObject" }, do: { body: { cutAt: 4 } } });
    const { Body, ContentLength } = await setting.client.send(
      new GetObjectCommand({ Bucket: setting.bucket, Key: "k" }),
    );
    expect(ContentLength).toBe(10);
    await expect(Body!.transformToString()).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(setting.s3.log.of("GetObject")).toMatchObject([{ bytesOut: 4 }]);
  });

  test("a body that comes slowly, in pieces", async () => {
    const setting = await start();
    await put(setting, "0123456789");
    setting.s3.script({ match: { operation: "GetObject" }, do: { body: { pieces: { bytes: 3, everyMs: 20 } } } });
    const { Body } = await setting.client.send(new GetObjectCommand({ Bucket: setting.bucket, Key: "k" }));
    const pieces: string[] = [];
    for await (const piece of Body as AsyncIterable<Buffer>) pieces.push(piece.toString());
    expect(pieces).toEqual(["012", "345", "678", "9"]);
  });

  test("200, spaces, and then an error: a completion that failed", async () => {
    const setting = await start();
    const { input } = await multipart(setting, ["x"]);
    const spaces = { count: 3, everyMs: 5 };
    setting.s3.script({
      match: { operation: "CompleteMultipartUpload", nth: 1 },
      do: { effect: "never", answer: { status: 200, code: "InternalError", message: "Try again.", spaces } },
    });
    const refused = setting.client.send(new CompleteMultipartUploadCommand(input));
    await expect(refused).rejects.toMatchObject({ name: "InternalError" });
    expect(setting.s3.objects(setting.bucket).size).toBe(0);
    // The rule was for the first only. The spaces do not harm an answer that is well, either.
    await setting.client.send(new CompleteMultipartUploadCommand(input));
    expect([...setting.s3.objects(setting.bucket).keys()]).toEqual(["k"]);
  });

  test("the spaces are on the wire, after the declaration", async () => {
    const setting = await start();
    const answer = { status: 200, code: "InternalError", spaces: { count: 3, everyMs: 1 } };
    setting.s3.script({ match: {}, do: { effect: "never", answer } });
    const { status, bytes } = await setting.raw("POST", "/k?uploadId=1", { body: "x" });
    expect(status).toBe(200);
    expect(bytes.toString()).toMatch(/^<\?xml version="1.0" encoding="UTF-8"\?>\n {3}<Error><Code>InternalError</);
  });

  test("a completion that comes again is told the same, or that there is none, as stores differ", async () => {
    for (const [completeAgain, expected] of [
      ["succeeds", { ETag: expect.stringMatching(/-1"$/) }],
      ["refused", { name: "NoSuchUpload" }],
    ] as const) {
      const setting = await start({ completeAgain });
      const { input } = await multipart(setting, ["x"]);
      await setting.client.send(new CompleteMultipartUploadCommand(input));
      const again = await setting.client.send(new CompleteMultipartUploadCommand(input)).catch((error) => error);
      expect(again).toMatchObject(expected);
    }
  });

  test("a part that is under way when its upload is aborted is refused, or stays until a second abort", async () => {
    for (const lateParts of ["refused", "stick"] as const) {
      const setting = await start({ lateParts });
      const { client, bucket: Bucket, s3 } = setting;
      const { UploadId } = await multipart(setting, ["first"]);
      s3.script({ match: { operation: "UploadPart", partNumber: 2 }, do: { wait: 50 } });
      const upload = (PartNumber: number) =>
        new UploadPartCommand({ Bucket, Key: "k", UploadId, PartNumber, Body: "x" });
      const late = client.send(upload(2)).then(
        () => "taken",
        (error: Error) => error.name,
      );
      while (s3.log.count("UploadPart") < 2) await sleep(1);
      const abort = () => client.send(new AbortMultipartUploadCommand({ Bucket, Key: "k", UploadId }));
      await abort();
      expect(s3.uploads(Bucket)).toEqual([]);
      if (lateParts === "refused") {
        expect(await late).toBe("NoSuchUpload");
        expect(s3.uploads(Bucket)).toEqual([]);
      } else {
        expect(await late).toBe("taken");
        expect(s3.uploads(Bucket)).toMatchObject([{ key: "k", id: UploadId, parts: [2] }]);
        await abort();
        expect(s3.uploads(Bucket)).toEqual([]);
      }
      // A part that begins after the abort never sticks.
      await expect(client.send(upload(3))).rejects.toMatchObject({ name: "NoSuchUpload" });
    }
  });

  test("rules can be functions, and a rule counts what an earlier one decided", async () => {
    const setting = await start();
    const refuse = (code: string) => ({ effect: "never", answer: { status: 400, code } }) as const;
    setting.s3.script(
      { match: ({ key }) => key === "b", do: refuse("First") },
      { match: { method: "PUT", nth: 2 }, do: refuse("Second") },
      { match: { key: /^c/, nth: [1, 2] }, do: refuse("Third") },
    );
    const codes: unknown[] = [];
    for (const path of ["/a", "/b", "/c1", "/c2", "/c3"])
      codes.push((await setting.raw("PUT", path, { body: "x" })).code);
    expect(codes).toEqual([undefined, "First", "Third", "Third", undefined]);
    setting.s3.script();
    expect((await setting.raw("PUT", "/b", { body: "x" })).status).toBe(200);
  });
});

describe("the log", () => {
  test("counts requests and bytes, and knows the query and the headers", async () => {
    const setting = await start();
    const { s3, raw, bucket } = setting;
    await raw("PUT", "/a%20b", { body: "12345" });
    await raw("GET", "/a%20b", { headers: { range: "bytes=1-2" } });
    await raw("GET", "?list-type=2&prefix=a");
    expect([s3.log.count(), s3.log.count("PutObject"), s3.log.count("HeadObject")]).toEqual([3, 1, 0]);
    expect(s3.log.requests).toMatchObject([
      { operation: "PutObject", bucket, key: "a b", bytesIn: 5, bytesOut: 0, status: 200 },
      { operation: "GetObject", key: "a b", bytesIn: 0, bytesOut: 2, status: 206, headers: { range: "bytes=1-2" } },
      { operation: "ListObjectsV2", key: "", status: 200 },
    ]);
    expect(s3.log.requests[2]!.query.get("prefix")).toBe("a");
    s3.log.clear();
    expect(s3.log.count()).toBe(0);
  });

  test("knows how many were under way at once, and how many uploads were open", async () => {
    const setting = await start();
    const { s3, raw, bucket } = setting;
    let here = 0;
    let release: () => void = () => undefined;
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    s3.script({
      match: ({ operation }) => {
        if (operation === "PutObject" && ++here === 3) release();
        return operation === "PutObject";
      },
      do: { wait: all },
    });
    await Promise.all(["/a", "/b", "/c"].map((path) => raw("PUT", path, { body: "x" })));
    expect(s3.log.peakInFlight).toBe(3);
    for (const path of ["/a", "/b"]) await raw("POST", `${path}?uploads`);
    expect(s3.peakUploads(bucket)).toBe(2);
  });
});

test("it stops while requests hang", async () => {
  const setting = await start();
  setting.s3.script({ match: {}, do: { answer: "hang" } });
  const hanging = expect(setting.raw("GET", "/k")).rejects.toThrow();
  while (setting.s3.log.count() === 0) await sleep(1);
  await setting.s3.stop();
  await hanging;
  await setting.s3.settled();
  await expect(clientOf(setting.s3).send(new HeadObjectCommand({ Bucket: "b", Key: "k" }))).rejects.toMatchObject({
    code: "ECONNREFUSED",
  });
});
