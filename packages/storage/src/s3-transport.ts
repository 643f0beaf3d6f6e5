/**
 * HTTP for the AWS SDK. Its own handler cannot say whether a request that failed can have reached the store as a whole,
 * and that decides whether "failed" may be reported or the outcome is unknown.
 */

import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import type { TLSSocket } from "node:tls";

/** Bytes written at once. All but the last piece have left before the last one is given to the socket. */
const WRITE_BYTES = 512 * 1024;
/** Idle connections are dropped before the servers drop them: a request on a dying one has an unknown outcome. */
const KEEP_MILLISECONDS = 4000;
const MAX_IDLE_SOCKETS = 32;
/** After an abort, a request that is out as a whole is waited for this long: mostly its answer is near. */
const GRACE_MILLISECONDS = 5000;

/** The part of the SDK's request that goes over the wire. */
interface WireRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null | undefined>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** How one request is made. The SDK hands it on as it is. */
export interface RequestMode {
  readonly abortSignal?: AbortSignal;
  /** After an abort, a request that is out as a whole is not given up at once: what became of it must be known. */
  readonly untilSent?: boolean;
  /** Hand on the body of a good answer while it arrives; its reader looks after aborts and timeouts. */
  readonly stream?: boolean;
}

interface WireResponse {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: Readable;
}

/** A request without an answer. */
export class TransportError extends Error {
  override readonly name: string = "TransportError";
  readonly kind: "connect" | "timeout" | "reset" | "aborted";
  /** The store can have got the whole request. If not, it has not acted on it. */
  readonly sent: boolean;

  constructor(kind: TransportError["kind"], sent: boolean, cause?: unknown) {
    super(`the request ended without an answer (${kind})`, { cause });
    this.kind = kind;
    this.sent = sent;
  }
}

export interface TransportTimes {
  /** Milliseconds to connect, with TLS. */
  readonly connectTimeoutMs: number;
  /** Milliseconds without any progress. */
  readonly timeoutMs: number;
}

/** An HTTP handler as the SDK wants it. */
export class S3Transport {
  readonly metadata = { handlerProtocol: "http/1.1" };
  readonly #times: TransportTimes;
  readonly #agents: { readonly http: HttpAgent; readonly https: HttpsAgent };

  constructor(times: TransportTimes) {
    this.#times = times;
    const options = { keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS, timeout: KEEP_MILLISECONDS };
    this.#agents = { http: new HttpAgent(options), https: new HttpsAgent(options) };
  }

  handle(request: WireRequest, mode: RequestMode = {}): Promise<{ response: WireResponse }> {
    if (mode.abortSignal?.aborted) return Promise.reject(new TransportError("aborted", false));
    const secure = request.protocol === "https:";
    const { hostname, port, method, headers } = request;
    const options = {
      host: hostname.replace(/^\[(.*)\]$/, "$1"),
      method,
      path: `${request.path}${queryString(request.query)}`,
      headers,
      ...(port === undefined ? {} : { port }),
    };
    const out = secure
      ? httpsRequest({ ...options, agent: this.#agents.https })
      : httpRequest({ ...options, agent: this.#agents.http });
    return exchange(out, bytesOf(request.body), mode, this.#times);
  }

  destroy(): void {
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  /** Asked for by the SDK's interface. */
  httpHandlerConfigs(): object {
    return {};
  }

  updateHttpClientConfig(): void {}
}

function exchange(
  out: ClientRequest,
  body: Uint8Array,
  mode: RequestMode,
  times: TransportTimes,
): Promise<{ response: WireResponse }> {
  const { abortSignal, untilSent = false, stream = false } = mode;
  return new Promise((resolve, reject) => {
    let sent = false;
    let settled = false;
    let timer = setTimeout(() => fail("connect", new Error("connecting took too long")), times.connectTimeoutMs);

    const settle = (): boolean => {
      if (settled) return false;
      settled = true;
      clearTimeout(timer);
      abortSignal?.removeEventListener("abort", onAbort);
      return true;
    };
    const fail = (kind: TransportError["kind"], cause?: unknown): void => {
      if (!settle()) return;
      out.destroy();
      reject(new TransportError(kind, sent, cause));
    };
    const onAbort = (): void => {
      const end = (): void => fail("aborted", abortSignal?.reason);
      clearTimeout(timer);
      if (sent && untilSent) timer = setTimeout(end, Math.min(GRACE_MILLISECONDS, times.timeoutMs));
      else end();
    };
    const answer = (incoming: IncomingMessage, content: Readable): void => {
      if (!settle()) return;
      // An answer before the end of the request is a refusal; the rest of the request has no reader.
      if (!sent) out.destroy();
      resolve({ response: { statusCode: incoming.statusCode ?? 0, headers: headersOf(incoming), body: content } });
    };

    abortSignal?.addEventListener("abort", onAbort, { once: true });
    let connected = false;
    out.on("error", (error) => fail(connected ? "reset" : "connect", error));
    out.on("close", () => fail(connected ? "reset" : "connect"));
    out.on("socket", (socket) => {
      whenConnected(socket, () => {
        if (settled) return;
        connected = true;
        clearTimeout(timer);
        timer = setTimeout(() => fail("timeout"), times.timeoutMs);
        write(out, body, () => timer.refresh()).then(
          (last) => {
            if (settled) return;
            sent = true;
            out.end(last);
          },
          () => undefined, // the request's own error event tells
        );
      });
    });
    out.on("response", (incoming) => {
      timer.refresh();
      if (stream && (incoming.statusCode ?? 0) < 300) return answer(incoming, incoming);
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        timer.refresh();
      });
      incoming.on("error", (error) => fail("reset", error));
      incoming.on("end", () => answer(incoming, Readable.from(chunks, { objectMode: false })));
    });
  });
}

function whenConnected(socket: Socket, then: () => void): void {
  const { secureConnecting = false } = socket as TLSSocket & { readonly secureConnecting?: boolean };
  if (secureConnecting) socket.once("secureConnect", then);
  else if (socket.connecting) socket.once("connect", then);
  else then();
}

/** Writes all but the last piece, which it returns: the request is not whole before that one is written. */
async function write(out: ClientRequest, body: Uint8Array, onProgress: () => void): Promise<Uint8Array> {
  let start = 0;
  for (; start + WRITE_BYTES < body.length; start += WRITE_BYTES) {
    const piece = body.subarray(start, start + WRITE_BYTES);
    await new Promise<void>((resolve, reject) => out.write(piece, (error) => (error ? reject(error) : resolve())));
    onProgress();
  }
  return body.subarray(start);
}

function bytesOf(body: unknown): Uint8Array {
  if (body === undefined || body === null) return new Uint8Array(0);
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  throw new TypeError("a request's body must be bytes: only those can be sent again");
}

/** As the SDK signs it: sorted, and escaped by RFC 3986. */
function queryString(query: WireRequest["query"] = {}): string {
  const parts: string[] = [];
  for (const name of Object.keys(query).sort()) {
    for (const value of [query[name]].flat()) {
      const escaped = typeof value === "string" ? `=${escapeText(value)}` : "";
      parts.push(`${escapeText(name)}${escaped}`);
    }
  }
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function escapeText(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function headersOf(incoming: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return headers;
}
