/**
 * Events to bench with: nine columns of which one is a struct with a list, some 230 bytes each. Random enough that
 * dictionaries are not flattered, with escapes, characters beyond ASCII, keys that lack and keys in another order.
 */

/** The columns, as a schema is written. */
export const EVENT_TYPES = {
  event_id: "string",
  user_id: "int64",
  ts: "timestamptz",
  event_type: "string",
  url: "string",
  amount: "float64",
  ok: "bool",
  session: "string",
  props: "struct<plan: string, n: int64, tags: list<string>>",
};

/** The same for DuckDB's `read_json`. */
export const EVENT_DUCKDB_TYPES = `{event_id: 'VARCHAR', user_id: 'BIGINT', ts: 'TIMESTAMPTZ', event_type: 'VARCHAR',
  url: 'VARCHAR', amount: 'DOUBLE', ok: 'BOOLEAN', session: 'VARCHAR',
  props: 'STRUCT(plan VARCHAR, n BIGINT, tags VARCHAR[])'}`;

/** The columns of the same events as CSV, which has no structs and no lists. */
const { props: _, ...simple } = EVENT_TYPES;
export const FLAT_EVENT_TYPES = { ...simple, plan: "string", n: "int64" };

/** The same for DuckDB's `read_csv`. */
export const FLAT_EVENT_DUCKDB_TYPES = `{event_id: 'VARCHAR', user_id: 'BIGINT', ts: 'TIMESTAMPTZ', event_type: 'VARCHAR',
  url: 'VARCHAR', amount: 'DOUBLE', ok: 'BOOLEAN', session: 'VARCHAR', plan: 'VARCHAR', n: 'BIGINT'}`;

/** Numbers in [0, 1) from a seed: splitmix32. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  };
}

/**
 * Events as NDJSON.
 * @param shuffled share of the rows whose keys are in random order
 * @param spaces whether there is a space behind colons and commas, as Python writes them
 * @param flat whether they are those of {@link FLAT_EVENT_TYPES}
 */
export function makeEvents(count, { shuffled = 0.02, spaces = false, flat = false, seed = 42 } = {}) {
  const random = generator(seed);
  const below = (n) => Math.floor(random() * n);
  const hex = () =>
    below(2 ** 32)
      .toString(16)
      .padStart(8, "0");
  const lines = [];
  let time = Date.UTC(2031, 0, 1);
  for (let i = 0; i < count; i++) {
    time += below(1000);
    const event = {
      event_id: hex() + hex() + hex() + hex(),
      user_id: below(50_000),
      ts: new Date(time).toISOString(),
      event_type: ["view", "click", "scroll", "purchase", "log\u00efn"][below(5)],
      url: `https://example.com/${["shop", "docs", "blog"][below(3)]}/${below(20_000)}?ref=${hex()}`,
      amount: random() < 0.3 ? Math.round(random() * 100_000) / 100 : undefined,
      ok: random() < 0.9,
      session: random() < 0.95 ? `s-${below(100_000)}` : null,
      props: {
        plan: ["free", "pro", 'a "quoted" plan'][below(3)],
        n: below(1000),
        tags: Array.from({ length: below(4) }, () => `tag${below(30)}`),
      },
    };
    if (flat) {
      const { props, ...rest } = event;
      lines.push(written({ ...rest, plan: props.plan, n: props.n }, spaces));
    } else lines.push(written(random() < shuffled ? shuffle(event, below) : event, spaces));
  }
  return `${lines.join("\n")}\n`;
}

/** Flat events of {@link makeEvents} as CSV. */
export function toCsv(text) {
  const cell = (value) => {
    if (value === undefined || value === null) return "";
    return typeof value === "string" && /[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value);
  };
  const names = Object.keys(FLAT_EVENT_TYPES);
  const lines = [names.join(",")];
  for (const line of text.trimEnd().split("\n")) {
    const event = JSON.parse(line);
    lines.push(names.map((name) => cell(event[name])).join(","));
  }
  return `${lines.join("\n")}\n`;
}

/** Rows of `width` integers, as NDJSON, with the schema that they have. */
export function wideRows(count, width) {
  const names = Array.from({ length: width }, (_, i) => `column_${i}`);
  const row = (i) => JSON.stringify(Object.fromEntries(names.map((name, j) => [name, (i * 31 + j * 1009) % 100_000])));
  return {
    types: Object.fromEntries(names.map((name) => [name, "int64"])),
    text: Array.from({ length: count }, (_, i) => `${row(i)}\n`).join(""),
  };
}

/** Rows with ten integers each, under ten of `width` keys. */
export function sparseRows(count, width) {
  const row = (i) =>
    JSON.stringify(
      Object.fromEntries(Array.from({ length: 10 }, (_, j) => [`key_${(i * 7919 + j * 997) % width}`, j])),
    );
  return {
    types: Object.fromEntries(Array.from({ length: width }, (_, i) => [`key_${i}`, "int64"])),
    text: Array.from({ length: count }, (_, i) => `${row(i)}\n`).join(""),
  };
}

function shuffle(object, below) {
  const entries = Object.entries(object);
  for (let i = entries.length - 1; i > 0; i--) {
    const j = below(i + 1);
    [entries[i], entries[j]] = [entries[j], entries[i]];
  }
  return Object.fromEntries(entries);
}

function written(value, spaces) {
  if (!spaces || typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((one) => written(one, spaces)).join(", ")}]`;
  const members = Object.entries(value).filter(([, one]) => one !== undefined);
  return `{${members.map(([key, one]) => `${JSON.stringify(key)}: ${written(one, spaces)}`).join(", ")}}`;
}
