/** The proleptic Gregorian calendar as ISO 8601 uses it: days since 1970-01-01 and the text of dates and times. */

/** Microseconds. */
const SECOND_MICROS = 1_000_000;
export const HOUR_MICROS = 3_600_000_000;
export const DAY_MICROS = 86_400_000_000;

interface CivilDate {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
}

/** Days since 1970-01-01 to a date. Years of 400 begin in March, so that a leap day is their last. */
function civilFromDays(days: number): CivilDate {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  };
}

/** Months since 1970-01 of a day. */
export function monthsFromDays(days: number): number {
  const { year, month } = civilFromDays(days);
  return (year - 1970) * 12 + month - 1;
}

/** `2031`; years outside 0000–9999 in ISO 8601's expanded form, six digits and a sign. */
export function formatYear(year: number): string {
  if (year >= 1000 && year <= 9999) return String(year);
  if (year >= 0 && year < 1000) return `0${THREE[year]}`;
  return `${year < 0 ? "-" : "+"}${String(Math.abs(year)).padStart(6, "0")}`;
}

/** `2031-02` from months since 1970-01. */
export function formatMonth(months: number): string {
  const year = 1970 + Math.floor(months / 12);
  return `${formatYear(year)}-${two(months - (year - 1970) * 12 + 1)}`;
}

/** `2031-02-03` from days since 1970-01-01. */
export function formatDate(days: number): string {
  const { year, month, day } = civilFromDays(days);
  return `${formatYear(year)}-${two(month)}-${two(day)}`;
}

/** `2031-02-03-04` from hours since the epoch. */
export function formatHour(hours: number): string {
  const days = Math.floor(hours / 24);
  return `${formatDate(days)}-${two(hours - days * 24)}`;
}

/** `23:06:40.123456` from microseconds since midnight; always six digits. */
export function formatTime(micros: number): string {
  const seconds = Math.floor(micros / SECOND_MICROS);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const fraction = micros - seconds * SECOND_MICROS;
  const millis = Math.floor(fraction / 1000);
  return `${TWO[hours]}:${TWO[minutes - hours * 60]}:${TWO[seconds - minutes * 60]}.${THREE[millis]}${THREE[fraction - millis * 1000]}`;
}

/** Two and three digits of small numbers: padding each anew took most of the time of reading timestamps. */
const TWO: readonly string[] = Array.from({ length: 100 }, (_, value) => String(value).padStart(2, "0"));
const THREE: readonly string[] = Array.from({ length: 1000 }, (_, value) => String(value).padStart(3, "0"));

function two(value: number): string {
  return TWO[value]!;
}
