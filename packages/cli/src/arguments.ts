/** What commands have in common: their arguments and options, and how values are read from text. */

import { Command, InvalidArgumentError, Option } from "commander";

/** `2031-02-03`, `2031-02-03T04:05`, `2031-02-03 04:05:06.789Z`, `…+09:00`. */
const INSTANT = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/i;

export function lakeCommand(name: string, summary: string, description: string): Command {
  return new Command(name).summary(summary).description(description).argument("<lake>", "folder of the lake");
}

export function tableCommand(name: string, summary: string, description: string): Command {
  return lakeCommand(name, summary, description).argument("<table>", "name of the table");
}

export function schemaModeOption(): Option {
  return new Option(
    "--schema-mode <mode>",
    "a field the table lacks becomes a column, is a reject, or is dropped (default: evolve)",
  ).choices(["evolve", "strict", "ignore"]);
}

/** `--at`: which state of the lake is meant. */
export function atOption(description: string): Option {
  return new Option(
    "--at <snapshot>",
    `${description} a snapshot: its number, its tag, or a time like 2031-02-03T04:05Z`,
  ).argParser(snapshot);
}

/** What `--at` gives, as the library takes it. */
export function atOptions(flags: { readonly at?: number | string | Date }): { at?: number | string | Date } {
  return flags.at === undefined ? {} : { at: flags.at };
}

/** A snapshot's number, an instant (in UTC where no zone is given), or a tag, which begins with no digit. */
export function snapshot(text: string): number | string | Date {
  if (/^\d+$/.test(text)) return wholeNumber(text);
  if (/^[^\d\s-]/.test(text)) return text;
  const [, day, time = "00:00", zone = "Z"] = INSTANT.exec(text) ?? [];
  const instant = new Date(`${day}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(instant.getTime())) {
    throw new InvalidArgumentError("It is a snapshot's number, its tag, or a time like 2031-02-03T04:05Z.");
  }
  return instant;
}

/** The same, but no tag. */
export function snapshotOrInstant(text: string): number | Date {
  const value = snapshot(text);
  if (typeof value !== "string") return value;
  throw new InvalidArgumentError("It is a snapshot's number, or a time like 2031-02-03T04:05Z.");
}

/** Names of columns by commas. */
export function names(text: string): readonly string[] {
  const found = text.split(",").map((name) => name.trim());
  if (found.includes("")) throw new InvalidArgumentError("A name between its commas is empty.");
  return found;
}

export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new InvalidArgumentError("It is a whole number.");
  return value;
}

export function positiveNumber(text: string): number {
  const value = wholeNumber(text);
  if (value === 0) throw new InvalidArgumentError("It is at least 1.");
  return value;
}

const UNITS = { "": 1, B: 1, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30, KB: 1e3, MB: 1e6, GB: 1e9 };

/** `4096`, `64MiB`, `1 GB`. */
export function byteSize(text: string): number {
  const [, digits, unit = ""] = /^(\d+) ?([a-z]*)$/i.exec(text) ?? [];
  const factor = UNITS[unit.toUpperCase() as keyof typeof UNITS];
  const size = Number(digits) * (factor ?? Number.NaN);
  if (!Number.isSafeInteger(size) || size === 0) throw new InvalidArgumentError("It is a size like 64MiB.");
  return size;
}

export const hours = (text: string): number => duration(text, "hours");
export const days = (text: string): number => duration(text, "days");
export const seconds = (text: string): number => duration(text, "seconds");

function duration(text: string, unit: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError(`It is a number of ${unit}, for example 0.5.`);
  return Number(text);
}

export function oneCharacter(text: string): string {
  const character = text === "\\t" ? "\t" : text;
  if (character.length !== 1) throw new InvalidArgumentError("It is one character, or \\t for a tab.");
  return character;
}

/** For an option that may be repeated, each time with one or several expressions: `day(ts), bucket(16, "a,b")`. */
export function expressions(text: string, before: readonly string[] = []): readonly string[] {
  const found: string[] = [];
  let depth = 0;
  let quoted = false;
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    const char = text[at];
    if (char === '"') quoted = !quoted;
    else if (!quoted && char === "(") depth++;
    else if (!quoted && char === ")") depth--;
    if (char !== undefined && (char !== "," || quoted || depth > 0)) continue;
    found.push(text.slice(start, at).trim());
    start = at + 1;
  }
  if (found.includes("")) throw new InvalidArgumentError("An expression between its commas is empty.");
  return [...before, ...found];
}
