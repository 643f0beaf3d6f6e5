/** What a fault sweep of `S3Store.put` is made of: shapes of puts, ways in which a request goes wrong, and what must hold then. */

import { AlreadyExistsError, StoreError } from "@eider/core";
import { FakeS3, type Fault, type FaultRule, type S3Request } from "../../test-s3/src/index.js";
import type { PutOptions } from "../src/index.js";
import { S3Store, type S3StoreOptions } from "../src/s3.js";
import { inPieces, MIB, pattern } from "./s3-fake.js";

const OLD = pattern(100);
const KEY = "table/data/object";
/** After silence. No other case may run into it: a timeout that nobody planned is one fault more. */
const SILENCE_MS = 1500;
const LATE_MS = 150;

export interface Shape {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** After its bytes the stream fails with `SOURCE_FAILED`, or the caller aborts. */
  readonly ends?: "source" | "caller";
  readonly streamed?: true;
  readonly condition?: "ifAbsent" | "ifMatch";
  readonly retries?: "none";
  readonly store?: Partial<S3StoreOptions>;
}

const SMALL = pattern(1000);
const TWO_PARTS = pattern(5 * MIB + 17);
const conditional = { conditionalMultipart: true };

export const shapes: readonly Shape[] = [
  { name: "bytes", bytes: SMALL },
  { name: "bytes if absent", bytes: SMALL, condition: "ifAbsent" },
  { name: "bytes if match", bytes: SMALL, condition: "ifMatch" },
  { name: "bytes if absent, sent once", bytes: SMALL, condition: "ifAbsent", retries: "none" },
  { name: "a stream of two parts", bytes: TWO_PARTS, streamed: true },
  { name: "a stream if absent", bytes: TWO_PARTS, streamed: true, condition: "ifAbsent", store: conditional },
  { name: "a stream if match", bytes: TWO_PARTS, streamed: true, condition: "ifMatch", store: conditional },
  { name: "a stream that fails", bytes: TWO_PARTS, streamed: true, ends: "source" },
  { name: "a stream whose put is aborted", bytes: TWO_PARTS, streamed: true, ends: "caller" },
];

const unavailable = { status: 503 } as const;
const internal = { status: 500, code: "InternalError" } as const;
const modes: Readonly<Record<string, Fault>> = {
  "500 before": { effect: "never", answer: internal },
  "503 SlowDown": { effect: "never", answer: { ...unavailable, code: "SlowDown" } },
  "503 without a body": { effect: "never", answer: unavailable },
  "reset before": { effect: "never", answer: "reset" },
  "cut in the request": { cutRequestAt: 1 },
  "silence before": { effect: "never", answer: "hang" },
  "answer lost": { answer: "reset" },
  "500 after": { answer: internal },
  "silence after": { answer: "hang" },
  "effect after a reset": { effect: { after: LATE_MS }, answer: "reset" },
  "effect after a 500": { effect: { after: LATE_MS }, answer: internal },
};
/** Only what makes an object visible is answered so. */
const commitModes: Readonly<Record<string, Fault>> = {
  "409 before": { effect: "never", answer: { status: 409, code: "ConditionalRequestConflict" } },
  "412 to its own success": { answer: { status: 412, code: "PreconditionFailed" } },
};
const completeModes: Readonly<Record<string, Fault>> = {
  "200 with an error": {
    effect: "never",
    answer: { status: 200, code: "InternalError", spaces: { count: 2, everyMs: 1 } },
  },
  "200 with an error, after": { answer: { status: 200, code: "InternalError" } },
};

const ENDS = new Set(["CompleteMultipartUpload", "HeadObject"]);

export const EXTENTS = ["once", "for good", "with all that follows"] as const;
export type Extent = (typeof EXTENTS)[number];

/** Where more than one request fails it matters little how; all modes for good are for puts that take little time. */
function extentsOf(mode: string, streamed: boolean): readonly Extent[] {
  const isOutage = ["503 SlowDown", "reset before", "silence before", "answer lost"].includes(mode);
  if (isOutage) return EXTENTS;
  return streamed ? ["once"] : ["once", "for good"];
}

const SOURCE_FAILED = new Error("the source failed");
const CALLER_ABORTED = new Error("the caller aborted");

export interface Outcome {
  readonly error: unknown;
  readonly etag: string | undefined;
  readonly requests: readonly S3Request[];
  readonly object: Uint8Array | undefined;
  readonly uploads: number;
  /** What a second put of the same did, on a store that is well. */
  readonly again: unknown;
  readonly objectAfter: Uint8Array | undefined;
}

/** One put under one script, and all that can be seen of it afterwards. */
export async function run(
  shape: Shape,
  rules: readonly FaultRule[],
  Store: typeof S3Store = S3Store,
): Promise<Outcome> {
  await using s3 = await FakeS3.start({ lateParts: "stick", completeAgain: rules.length > 0 ? "refused" : "succeeds" });
  const bucket = await s3.makeBucket();
  const { endpoint, region, accessKeyId, secretAccessKey } = s3;
  const place = { bucket, endpoint, region, credentials: { accessKeyId, secretAccessKey } };
  const settings = { ...place, partBytes: 5 * MIB, retry: { attempts: 4, baseMs: 1, maxMs: 4 }, ...shape.store };
  const timeoutMs = rules.some(isSilence) ? SILENCE_MS : 60_000;
  await using store = new Store({ ...settings, timeoutMs, maxInFlight: 2 });
  const old = shape.condition === "ifAbsent" ? undefined : await store.put(KEY, OLD);
  const put = async (whole: boolean, on: S3Store = store): Promise<string> => {
    const abort = new AbortController();
    async function* source(): AsyncGenerator<Uint8Array> {
      yield* inPieces(shape.bytes, MIB);
      if (whole) return;
      if (shape.ends === "source") throw SOURCE_FAILED;
      abort.abort(CALLER_ABORTED);
      yield shape.bytes.subarray(-1);
    }
    const options: PutOptions = {
      signal: abort.signal,
      ...(shape.condition === "ifAbsent" ? { ifAbsent: true } : {}),
      ...(shape.condition === "ifMatch" ? { ifMatch: old!.etag } : {}),
      ...(shape.retries === undefined ? {} : { retries: shape.retries }),
    };
    return (await on.put(KEY, shape.streamed ? source() : shape.bytes, options)).etag;
  };
  s3.log.clear();
  s3.script(...rules);
  const first = await settled(put(shape.ends === undefined));
  await s3.settled();
  const requests = [...s3.log.requests];
  const object = s3.objects(bucket).get(KEY);
  const uploads = s3.uploads(bucket).length;
  s3.script();
  await using patient = new Store(settings);
  const again = await settled(put(true, patient));
  await s3.settled();
  return { ...first, requests, object, uploads, again: again.error, objectAfter: s3.objects(bucket).get(KEY) };
}

function isSilence({ do: fault }: FaultRule): boolean {
  return fault.answer === "hang";
}

async function settled(putting: Promise<string>): Promise<{ error: unknown; etag: string | undefined }> {
  try {
    return { error: undefined, etag: await putting };
  } catch (error) {
    return { error, etag: undefined };
  }
}

function ruleFor(extent: Extent, index: number, operation: string, fault: Fault): FaultRule {
  let seen = 0;
  let reached = false;
  const match = (request: S3Request): boolean => {
    const here = seen++ === index;
    reached ||= here;
    if (extent === "once") return here;
    return reached && (extent === "with all that follows" || request.operation === operation);
  };
  return { match, do: fault };
}

/** What is wrong with an outcome, in words; empty if nothing is. */
export function problemsOf(shape: Shape, extent: Extent, mode: string, operation: string, outcome: Outcome): string[] {
  const { error, etag, object, uploads, again, objectAfter } = outcome;
  const problems: string[] = [];
  const say = (problem: string): void => void problems.push(problem);
  const isNew = object !== undefined && Buffer.compare(object, shape.bytes) === 0;
  const isOld =
    shape.condition === "ifAbsent" ? object === undefined : object !== undefined && Buffer.compare(object, OLD) === 0;
  if (!isNew && !isOld) say("half an object is visible");

  const code = error instanceof StoreError ? error.code : undefined;
  if (error === undefined) {
    if (!isNew || etag === undefined) say("it says that it succeeded, and the object is not there");
  } else if (error === SOURCE_FAILED || error === CALLER_ABORTED) {
    if (!isOld) say("the object is there after the put was given up");
  } else if (error instanceof AlreadyExistsError && shape.retries === "none") {
    // Sent once: whose the object is, the caller finds out.
    if (object === undefined) say("it says that there is an object, and there is none");
  } else if (code === "put_unsettled") {
    if ((error as StoreError).retryable) say("put_unsettled is never retryable");
  } else if (code === undefined) say(`it is no StoreError: ${String(error)}`);
  else {
    if (!isOld) say(`it says ${code}, and the object is there`);
    if (!String((error as Error).message).includes(KEY)) say(`the message does not name the object: ${String(error)}`);
  }
  if (shape.ends === "source" && error !== SOURCE_FAILED && extent === "once")
    say(`the source's error is hidden: ${String(error)}`);
  if (shape.ends === "caller" && error !== CALLER_ABORTED && extent === "once")
    say(`the caller's reason is hidden: ${String(error)}`);
  if (shape.ends === undefined && shape.retries === undefined && extent === "once" && error !== undefined)
    say(`one fault is too much for it: ${String(error)}`);

  if (uploads > 0 && !mayLeaveUpload(extent, mode, operation)) say(`${uploads} uploads are left behind`);

  const isNewAfter = objectAfter !== undefined && Buffer.compare(objectAfter, shape.bytes) === 0;
  const refused =
    shape.condition === "ifAbsent"
      ? again instanceof AlreadyExistsError
      : again instanceof StoreError && again.code === "etag_mismatch";
  // A put with a condition is refused if the first one has succeeded, and only then.
  if (again !== undefined && !(shape.condition !== undefined && isNew && refused))
    say(`the put again fails: ${String(again)}`);
  if (!isNewAfter) say("after the put again the object is not whole");
  return problems;
}

/** What no client can clear away: it is for the store's rule on incomplete uploads. */
function mayLeaveUpload(extent: Extent, mode: string, operation: string): boolean {
  // The store is away, or will not end an upload.
  if (extent === "with all that follows") return true;
  if (extent === "for good" && operation === "AbortMultipartUpload") return true;
  // An upload, or a part that brings one back, which comes after the client has looked for the last time.
  return ["CreateMultipartUpload", "UploadPart"].includes(operation) && mode.startsWith("effect after");
}

/** One request of a put and what happens to it. */
export interface SweepCase {
  readonly operation: string;
  /** Of the request among all, from 0. */
  readonly index: number;
  readonly mode: string;
  readonly fault: Fault;
  readonly extent: Extent;
}

/** @param requests those that the put makes when all goes well */
export function casesOf(shape: Shape, requests: readonly S3Request[]): SweepCase[] {
  return requests.flatMap(({ operation }, index) => {
    // With a condition only the end is another.
    if (shape.streamed && shape.condition !== undefined && !ENDS.has(operation)) return [];
    const isComplete = operation === "CompleteMultipartUpload";
    const isCommit = isComplete || operation === "PutObject";
    const all = {
      ...modes,
      ...(isCommit && shape.condition !== undefined ? commitModes : {}),
      ...(isComplete ? completeModes : {}),
    };
    return Object.entries(all).flatMap(([mode, fault]) =>
      extentsOf(mode, shape.streamed ?? false).map((extent) => ({ operation, index, mode, fault, extent })),
    );
  });
}

/** Runs one case and says what is wrong, with its name; nothing if all is well. */
export async function runCase(shape: Shape, each: SweepCase, Store: typeof S3Store = S3Store): Promise<string[]> {
  const { operation, index, mode, fault, extent } = each;
  const outcome = await run(shape, [ruleFor(extent, index, operation, fault)], Store);
  const problems = problemsOf(shape, extent, mode, operation, outcome);
  return problems.map((problem) => `${operation} ${index + 1}, ${mode}, ${extent}: ${problem}`);
}
