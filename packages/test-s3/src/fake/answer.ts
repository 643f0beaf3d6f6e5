/** Answers as S3 gives them. */

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** What S3 says no with. */
export class S3Error extends Error {
  readonly status: number;
  readonly code: string;
  /** More elements of the error document, and headers. */
  readonly details: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    details: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
    this.headers = headers;
  }
}

/** What S3 says to a header that it does not know, or not there. */
export function notImplemented(header?: string): S3Error {
  const message = "A header you provided implies functionality that is not implemented";
  return new S3Error(501, "NotImplemented", message, header === undefined ? {} : { Header: header });
}

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';

export function errorAnswer(error: S3Error, resource: string): Answer {
  const { code: Code, message: Message, details } = error;
  const elements = { Code, Message, ...details, Resource: resource, HostId: "fake" };
  const content = Object.entries(elements).map(([name, value]) => element(name, value));
  return { status: error.status, headers: { ...XML, ...error.headers }, body: document("Error", content, false) };
}

export function xmlAnswer(root: string, content: readonly string[]): Answer {
  return { status: 200, headers: XML, body: document(root, content, true) };
}

/** An element of text, escaped as S3 escapes: so that no key ends the document early. */
export function element(name: string, value: string | number | boolean): string {
  return `<${name}>${escapeXml(String(value))}</${name}>`;
}

/** Texts of all elements of a name, in their order, whatever is around them. What clients send has no attributes there. */
export function elementsOf(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>(.*?)</${name}>`, "gs"))].map(([, text]) => text!);
}

/** The text of the first element of a name. */
export function textOf(xml: string, name: string): string | undefined {
  const [first] = elementsOf(xml, name);
  return first === undefined ? undefined : unescapeXml(first);
}

const XML = { "content-type": "application/xml" };

function document(root: string, content: readonly string[], namespaced: boolean): string {
  const namespace = namespaced ? ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"' : "";
  return `${DECLARATION}<${root}${namespace}>${content.join("")}</${root}>`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escapeXml(text: string): string {
  return text
    .replaceAll(/[&<>"]/g, (character) => ENTITIES[character]!)
    .replaceAll(/\p{Cc}/gu, (character) => `&#x${character.charCodeAt(0).toString(16)};`);
}

function unescapeXml(text: string): string {
  const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
  return text.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    return named[name] ?? whole;
  });
}
