import type { S3Request } from "./request.js";

/** What a request was and how it went. */
export interface LoggedRequest extends S3Request {
  /** Bytes of the request's body, as they came. */
  readonly bytesIn: number;
  /** Bytes of the answer's body that were sent. */
  readonly bytesOut: number;
  /** Undefined: no answer was sent. */
  readonly status: number | undefined;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Undefined while it is under way. */
  readonly endedAt: number | undefined;
  /** Whether the script had its hand in it. */
  readonly faulted: boolean;
}

/** All requests of a server, in the order of their arrival. */
export class RequestLog {
  readonly #requests: Mutable<LoggedRequest>[] = [];
  /** The largest number of requests that were under way at once. */
  peakInFlight = 0;
  #inFlight = 0;

  get requests(): readonly LoggedRequest[] {
    return this.#requests;
  }

  /** How many there were of an operation, or in all. */
  count(operation?: string): number {
    return this.of(operation).length;
  }

  /** Those of one operation, or all. */
  of(operation?: string): readonly LoggedRequest[] {
    return this.#requests.filter((request) => operation === undefined || request.operation === operation);
  }

  clear(): void {
    this.#requests.length = 0;
    this.peakInFlight = this.#inFlight;
  }

  begin(request: S3Request): Mutable<LoggedRequest> {
    const empty = { bytesIn: 0, bytesOut: 0, status: undefined, endedAt: undefined, faulted: false };
    const entry = { ...request, ...empty, startedAt: Date.now() };
    this.#requests.push(entry);
    this.peakInFlight = Math.max(this.peakInFlight, ++this.#inFlight);
    return entry;
  }

  end(entry: Mutable<LoggedRequest>): void {
    entry.endedAt = Date.now();
    this.#inFlight--;
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
