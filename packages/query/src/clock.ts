/**
 * The time as a statement sees it. DuckDB's `now()` keeps one value during a statement, but a plan is made before the
 * statement runs, and in another instance. So where both need the same, a session gets macros in place of the functions:
 * they hide DuckDB's, and keep its names and types of columns.
 */

/** The functions, and what each makes of an instant in UTC. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  now: "TIMESTAMPTZ",
  get_current_timestamp: "TIMESTAMPTZ",
  transaction_timestamp: "TIMESTAMPTZ",
  today: "TIMESTAMP::DATE",
  current_date: "TIMESTAMP::DATE",
  current_localtimestamp: "TIMESTAMP",
  current_localtime: "TIMESTAMP::TIME",
  get_current_time: "TIMESTAMP::TIME::TIMETZ",
};

/** Words that DuckDB's parser, or a macro of its own, makes calls of them. */
const WORDS: ReadonlySet<string> = new Set(["current_timestamp", "current_time", "localtimestamp", "localtime", "ago"]);

/** The instance's own clock, in UTC as its time zone is, past whatever stands in its place. */
export const READ_CLOCK = "SELECT strftime(system.main.now(), '%Y-%m-%d %H:%M:%S.%f')";

/** A name, lower-case, through which a statement reaches DuckDB's own functions where a session has others. */
export const BEYOND_CLOCK = "system";

/** Whether the name, in lower case, means something that {@link clockSql} gives. */
export function tellsTime(name: string): boolean {
  return Object.hasOwn(FUNCTIONS, name) || WORDS.has(name);
}

/**
 * Makes an instant the time of all statements of a session.
 * @param now as {@link READ_CLOCK} gives it
 * @param database of the session
 */
export function clockSql(now: string, database: string): string {
  return Object.entries(FUNCTIONS)
    .map(([name, type]) => `CREATE OR REPLACE MACRO ${database}.main.${name}() AS '${now}'::${type}`)
    .join(";");
}
