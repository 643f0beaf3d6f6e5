/** What the engine has found out about the cells of columns, for inference. See `assembly/profile.ts`, same numbers. */

import { CsvEngineRecords } from "./csv-engine-records.js";
import { acquireEngine, type Engine } from "./engine.js";
import { EngineBatches } from "./engine-batches.js";
import type { CsvOptions } from "./parser.js";

/** What a column is asked for. */
export interface ProfileOptions {
  /** Dates and times are kinds. */
  readonly temporal: boolean;
  /** Once there is other text, no further cell matters. */
  readonly open: boolean;
  /** Fractions are left to TypeScript. */
  readonly exact: boolean;
}

const PROFILE_BYTES = 96;
const PROFILE = 25;
const NULLABLE = 1;
const TEMPORAL = 4;
const OPEN = 8;
const EXACT = 16;

/** Words within a profile. */
const KINDS = 3;
const WIDEST = 14;
const LOWEST = 10;
const HIGHEST = 12;
const MOST_DIGITS = 16;
const MOST_PLACES = 17;
const MOST_WRITTEN = 18;
const LONGEST = 20;
const LONGEST_PLACES = 22;

/** Texts that stand for all of their kind, by its bit. */
const TEXTS: readonly (readonly [kind: number, text: string])[] = [
  [2, "true"],
  [4, "2031-02-03"],
  [8, "2031-02-03T04:05:06"],
  [16, "2031-02-03T04:05:06Z"],
  [32, "text"],
];
const INTEGER = 1;
const FRACTION = 64;

/** Profiles of a CSV text's columns, filled by the engine. */
export class CsvProfiles {
  readonly records: CsvEngineRecords;
  readonly #batches: EngineBatches;
  #room = 0;

  /** Undefined on hosts where the engine cannot run. */
  static create(csv: CsvOptions): CsvProfiles | undefined {
    const engine = acquireEngine();
    return engine && new CsvProfiles(csv, engine);
  }

  private constructor(csv: CsvOptions, engine: Engine) {
    const unlimited = Number.POSITIVE_INFINITY;
    const options = {
      schema: { fields: [] },
      format: "csv",
      csv,
      unknownFields: "ignore",
      valueMisfits: "reject",
      batchRows: unlimited,
      batchBytes: unlimited,
    } as const;
    this.#batches = new EngineBatches(options, engine);
    this.records = new CsvEngineRecords(options, this.#batches);
  }

  /** @param columns of the input; undefined where nobody asks */
  begin(delimiter: string | undefined, columns: readonly (ProfileOptions | undefined)[]): void {
    const room = columns.length * PROFILE_BYTES;
    this.#room = this.records.begin(delimiter, columns.length, room, (column, address) =>
      columns[column] ? address + column * PROFILE_BYTES : undefined,
    );
    const { words } = this.#batches.engine;
    for (const [column, options] of columns.entries()) {
      const at = this.#at(column);
      words.fill(0, at, at + PROFILE_BYTES / 4);
      if (!options) continue;
      words[at] = PROFILE;
      words[at + 1] =
        NULLABLE | (options.temporal ? TEMPORAL : 0) | (options.open ? OPEN : 0) | (options.exact ? EXACT : 0);
      // As long as any column: there are no values that lack.
      words[at + 2] = 0xffff_ffff;
    }
  }

  /** Records that the engine has taken. */
  get rows(): number {
    return this.#batches.taken;
  }

  /** Cells from which follows, of a column's type, what follows from all that the engine has taken. */
  texts(column: number): string[] {
    const { words } = this.#batches.engine;
    const at = this.#at(column);
    const kinds = words[at + KINDS]!;
    const texts = TEXTS.filter(([kind]) => (kinds & kind) !== 0).map(([, text]) => text);
    if ((kinds & INTEGER) !== 0) {
      for (const word of [LOWEST, HIGHEST, WIDEST]) texts.push(String(BigInt.asIntN(64, this.#long(at + word))));
    }
    if ((kinds & FRACTION) !== 0) {
      const digits = words[at + MOST_DIGITS]!;
      const places = words[at + MOST_PLACES]!;
      texts.push(`${digits > 0 ? "1".padEnd(digits, "0") : "0"}.${"0".repeat(words[at + MOST_WRITTEN]!)}`);
      if (places > 0) texts.push(`0.${"1".padStart(places, "0")}`);
      const longestPlaces = words[at + LONGEST_PLACES]!;
      const longest = String(this.#long(at + LONGEST)).padStart(longestPlaces + 1, "0");
      if (longestPlaces > 0) texts.push(`${longest.slice(0, -longestPlaces)}.${longest.slice(-longestPlaces)}`);
    }
    return texts;
  }

  /** Gives the engine back. */
  release(): void {
    this.#batches.release();
  }

  #at(column: number): number {
    return (this.#room + column * PROFILE_BYTES) >>> 2;
  }

  #long(word: number): bigint {
    const { words } = this.#batches.engine;
    return (BigInt(words[word + 1]!) << 32n) | BigInt(words[word]!);
  }
}
