/**
 * Cuts SQL into tokens by DuckDB's lexical rules, which are PostgreSQL's: nested block comments, dollar quotes,
 * doubled quotes, `E'…'` escapes. Enough to find names, parameters and statement ends without being fooled by text.
 */

export type TokenKind = "word" | "quoted" | "string" | "number" | "parameter" | "symbol";

export interface Token {
  readonly kind: TokenKind;
  /** Characters `[start, end)` of the SQL. */
  readonly start: number;
  readonly end: number;
  /**
   * What it says: `word` as written, `quoted` and `string` without their quotes, `parameter` without its mark
   * (`""` for a plain `?`), `symbol` one character or `=>`.
   */
  readonly value: string;
}

/** A quote or comment that never ends. */
export class UnterminatedToken extends Error {
  override readonly name = "UnterminatedToken";
  readonly start: number;

  constructor(what: string, start: number) {
    super(`unterminated ${what}`);
    this.start = start;
  }
}

const SPACE = /\s+/y;
const LINE_COMMENT = /--[^\r\n]*/y;
const BLOCK_EDGE = /\/\*|\*\//g;
const ESCAPED_STRING = /[eE]'([^'\\]*(?:(?:\\[\s\S]|'')[^'\\]*)*)'/y;
const STRING = /'([^']*(?:''[^']*)*)'/y;
const QUOTED = /"([^"]*(?:""[^"]*)*)"/y;
const DOLLAR_TAG = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;
const PARAMETER = /\?(\d*)|\$([\w\u0080-\uffff]+)/y;
/** Unicode spaces are spaces to DuckDB too, so they end a word. */
const WORD = /(?!\s)[A-Za-z_\u0080-\uffff](?:(?!\s)[\w$\u0080-\uffff])*/y;
const NUMBER = /0[xX][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?/y;

/** @throws UnterminatedToken */
export function tokenize(sql: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(sql);
  };
  const push = (kind: TokenKind, end: number, value: string): void => {
    tokens.push({ kind, start: at, end, value });
    at = end;
  };
  while (at < sql.length) {
    const c = sql[at]!;
    const next = sql[at + 1];
    const blank = match(SPACE) ?? (c === "-" && next === "-" ? match(LINE_COMMENT) : null);
    if (blank) {
      at += blank[0].length;
      continue;
    }
    if (c === "/" && next === "*") {
      at = blockCommentEnd(sql, at);
      continue;
    }
    if (c === "'" || ((c === "e" || c === "E") && next === "'")) {
      const m = match(c === "'" ? STRING : ESCAPED_STRING);
      if (!m) throw new UnterminatedToken("string", at);
      push("string", at + m[0].length, m[1]!.replaceAll("''", "'"));
      continue;
    }
    if (c === '"') {
      const m = match(QUOTED);
      if (!m) throw new UnterminatedToken("quoted name", at);
      push("quoted", at + m[0].length, m[1]!.replaceAll('""', '"'));
      continue;
    }
    const tag = c === "$" ? match(DOLLAR_TAG) : null;
    if (tag) {
      const from = at + tag[0].length;
      const close = sql.indexOf(tag[0], from);
      if (close < 0) throw new UnterminatedToken("dollar-quoted string", at);
      push("string", close + tag[0].length, sql.slice(from, close));
      continue;
    }
    const parameter = c === "$" || c === "?" ? match(PARAMETER) : null;
    const word = parameter ? null : match(WORD);
    const number = (c >= "0" && c <= "9") || c === "." ? match(NUMBER) : null;
    if (parameter) push("parameter", at + parameter[0].length, parameter[1] ?? parameter[2]!);
    else if (word) push("word", at + word[0].length, word[0]);
    else if (number) push("number", at + number[0].length, number[0]);
    else if (c === "=" && next === ">") push("symbol", at + 2, "=>");
    else push("symbol", at + 1, c);
  }
  return tokens;
}

function blockCommentEnd(sql: string, start: number): number {
  let depth = 0;
  BLOCK_EDGE.lastIndex = start;
  for (let m = BLOCK_EDGE.exec(sql); m; m = BLOCK_EDGE.exec(sql)) {
    depth += m[0] === "/*" ? 1 : -1;
    if (depth === 0) return BLOCK_EDGE.lastIndex;
  }
  throw new UnterminatedToken("comment", start);
}

/** Whether the token is the unquoted word, in any case. */
export function isWord(token: Token | undefined, word: string): boolean {
  return token?.kind === "word" && token.value.toUpperCase() === word;
}

export function isSymbol(token: Token | undefined, symbol: string): boolean {
  return token?.kind === "symbol" && token.value === symbol;
}

/** Whether the token may name something. */
export function isName(token: Token | undefined): token is Token {
  return token?.kind === "word" || token?.kind === "quoted";
}

/** Index of the `)` that closes the `(` at `open`; the last index if none does. */
export function closing(tokens: readonly Token[], open: number): number {
  let depth = 0;
  for (let i = open; i < tokens.length; i++) {
    if (isSymbol(tokens[i], "(")) depth++;
    else if (isSymbol(tokens[i], ")") && --depth === 0) return i;
  }
  return tokens.length - 1;
}

/** A name as SQL text. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text as an SQL literal. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
