/** What goes wrong, and when: rules that are looked at for every request; the first that matches decides. */

import type { S3Request } from "./request.js";

export interface FaultRule {
  readonly match: RequestMatch | ((request: S3Request) => boolean);
  readonly do: Fault;
}

/** All that is given must hold. */
export interface RequestMatch {
  /** As AWS calls it: `PutObject`, `UploadPart`, … */
  readonly operation?: string | readonly string[];
  readonly method?: string;
  readonly bucket?: string;
  readonly key?: string | RegExp;
  readonly partNumber?: number;
  /** Only these of the requests that match otherwise, counted from 1: the first and the last of them. */
  readonly nth?: number | readonly [first: number, last: number];
}

/** Effect and answer are apart, as they are on a network. */
export interface Fault {
  /** Before the effect and the answer: milliseconds, or until this is settled. */
  readonly wait?: number | Promise<unknown>;
  /** Default "now". "never": nothing is done. `after`: done that much later, or when it is settled, whatever was answered by then. */
  readonly effect?: "now" | "never" | { readonly after: number | Promise<unknown> };
  /** Default: what the operation says. "reset" breaks the connection, "hang" keeps it without a word until the client goes. */
  readonly answer?: FaultAnswer | "reset" | "hang";
  /** The request's own body is read up to here, in bytes; then the connection breaks, without an effect. */
  readonly cutRequestAt?: number;
  /** How the body of the answer comes. */
  readonly body?: {
    /** In pieces of this many bytes, with so many milliseconds between them. */
    readonly pieces?: { readonly bytes: number; readonly everyMs: number };
    /** The connection breaks after this many bytes; the headers promise all. */
    readonly cutAt?: number;
  };
}

export interface FaultAnswer {
  readonly status: number;
  /** Of an error document; without it the body is empty. */
  readonly code?: string;
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of an error document. */
  readonly text?: string;
  /** Sent with the status before the rest, as S3 does while it completes an upload: so many, so many milliseconds apart. */
  readonly spaces?: { readonly count: number; readonly everyMs: number };
}

export class Script {
  #rules: readonly { readonly rule: FaultRule; seen: number }[] = [];

  set(rules: readonly FaultRule[]): void {
    this.#rules = rules.map((rule) => ({ rule, seen: 0 }));
  }

  /** Every rule counts the requests that it is about, also those that an earlier rule decided. */
  faultFor(request: S3Request): Fault | undefined {
    let fault: Fault | undefined;
    for (const counted of this.#rules) {
      const { match } = counted.rule;
      if (typeof match === "function" ? !match(request) : !matches(match, request)) continue;
      counted.seen++;
      if (typeof match !== "function" && !isNth(match.nth, counted.seen)) continue;
      fault ??= counted.rule.do;
    }
    return fault;
  }
}

function matches({ operation, method, bucket, key, partNumber }: RequestMatch, request: S3Request): boolean {
  return (
    (operation === undefined || [operation].flat().includes(request.operation)) &&
    (method === undefined || method === request.method) &&
    (bucket === undefined || bucket === request.bucket) &&
    (key === undefined || (typeof key === "string" ? key === request.key : key.test(request.key))) &&
    (partNumber === undefined || String(partNumber) === request.query.get("partNumber"))
  );
}

function isNth(nth: RequestMatch["nth"], seen: number): boolean {
  if (nth === undefined) return true;
  const [first, last] = typeof nth === "number" ? [nth, nth] : nth;
  return seen >= first && seen <= last;
}
