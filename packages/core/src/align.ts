/** Fits batches to a table's schema. */

import { isValid } from "./bitmap.js";
import type { Column, RecordBatch } from "./columns.js";
import type { RowProblem } from "./errors.js";
import { nullColumn } from "./layout.js";
import { convertible, typeMismatch } from "./merge.js";
import { convertNumbers } from "./number-convert.js";
import { type DataType, type Field, formatType, nameKey, type Schema, storedSchema, storedType } from "./schema.js";
import { takeRows } from "./take.js";
import { valueReader } from "./values.js";

/** What tells that two fields are the same one: their names without case, of data that comes; their ids, of stored rows. */
export type FieldMatch = "name" | "id";

/**
 * The batch with the columns, types and field ids of `target`, matched at every level. Columns of
 * the same type share their buffers; absent ones are null; those that `target` lacks are left out.
 *
 * A row with a value that does not fit exactly (`type_mismatch`) or with a null where there may be none
 * (`missing_value`) is left out and reported; `line` is its 1-based number in the batch.
 * @throws SchemaError `type_mismatch` where no value could fit; `mergeSchema` has told before
 */
export function alignBatch(
  batch: RecordBatch,
  target: Schema,
  match: FieldMatch = "name",
): { batch: RecordBatch; rejects: RowProblem[] } {
  const problems = new Map<number, RowProblem>();
  const report: Report = (row, code, reason) => {
    if (!problems.has(row)) problems.set(row, { line: row + 1, code, reason });
  };
  const root = { fields: batch.schema.fields, columns: batch.columns, length: batch.length, validity: undefined };
  const columns = alignFields(root, target.fields, [], { match, report });
  const aligned = { schema: storedSchema(target), length: batch.length, columns };
  if (problems.size === 0) return { batch: aligned, rejects: [] };
  const rejects = [...problems.values()].sort((a, b) => a.line - b.line);
  const kept = new Uint32Array(batch.length - rejects.length);
  for (let row = 0, to = 0; row < batch.length; row++) if (!problems.has(row)) kept[to++] = row;
  return { batch: takeRows(aligned, kept), rejects };
}

/** Takes a problem of the value at a position of one level, and passes it up to the row. */
type Report = (index: number, code: string, reason: string) => void;

interface Rules {
  readonly match: FieldMatch;
  readonly report: Report;
}

/** A batch or a struct. */
interface Group {
  readonly fields: readonly Field[];
  readonly columns: readonly Column[];
  readonly length: number;
  readonly validity: Uint8Array | undefined;
}

function alignFields(group: Group, targets: readonly Field[], path: readonly string[], rules: Rules): Column[] {
  const keyOf = ({ id, name }: Field): number | string => (rules.match === "id" ? id : nameKey(name));
  const places = new Map(group.fields.map((field, i) => [keyOf(field), i]));
  const out: Column[] = [];
  for (const target of targets) {
    const place = places.get(keyOf(target));
    const column = place === undefined ? undefined : group.columns[place];
    const aligned = alignField(column, target, group, [...path, target.name], rules);
    if (aligned) out.push(aligned);
  }
  return out;
}

/** Undefined for a field that is not stored: its values may only be null. */
function alignField(
  column: Column | undefined,
  target: Field,
  parent: Pick<Group, "length" | "validity">,
  path: readonly string[],
  rules: Rules,
): Column | undefined {
  const { report } = rules;
  const stored = storedType(target.type);
  if (stored === undefined) {
    if (column)
      reportValues(
        column,
        (valid) => valid,
        "type_mismatch",
        `${nameOf(path)} has no type yet: append with schemaMode "evolve" to give it one`,
        report,
      );
    return undefined;
  }
  const aligned = column ? alignColumn(column, target.type, path, rules) : nullColumn(stored, parent.length);
  if (!target.nullable && aligned.nullCount > 0) {
    const { validity } = parent;
    // Under a null struct there is nothing to miss.
    const reason = `${nameOf(path)} may not be null`;
    reportValues(aligned, (valid, i) => !valid && isValid(validity, i), "missing_value", reason, report);
  }
  return aligned;
}

function reportValues(
  column: Column,
  test: (valid: boolean, index: number) => boolean,
  code: string,
  reason: string,
  report: Report,
): void {
  for (let i = 0; i < column.length; i++) if (test(isValid(column.validity, i), i)) report(i, code, reason);
}

function nameOf(path: readonly string[]): string {
  return `the column ${path.map((name) => JSON.stringify(name)).join(".")}`;
}

function alignColumn(column: Column, target: DataType, path: readonly string[], rules: Rules): Column {
  const { type } = column;
  const { report } = rules;
  const stored = storedType(target)!;
  if (type.kind === "struct" && target.kind === "struct") {
    const group = { fields: type.fields, columns: column.children, length: column.length, validity: column.validity };
    return { ...column, type: stored, children: alignFields(group, target.fields, path, rules) };
  }
  if (type.kind === "list" && target.kind === "list") {
    const child = alignElements(column, 0, target.element, [...path, "element"], rules);
    return { ...column, type: stored, children: [child] };
  }
  if (type.kind === "map" && target.kind === "map") {
    const key = alignElements(column, 0, target.key, [...path, "key"], rules);
    const value = alignElements(column, 1, target.value, [...path, "value"], rules);
    return { ...column, type: stored, children: [key, value] };
  }
  if (!convertible(type, target)) throw typeMismatch(path, target, type);
  if (formatType(type) === formatType(target)) return { ...column, type: stored };
  if (target.kind === "string") return { ...column, type: stored };
  const reason = `${nameOf(path)} holds a value that does not fit ${formatType(target)}`;
  if (target.kind === "json") {
    checkJson(column, (i) => report(i, "type_mismatch", reason));
    return { ...column, type: stored };
  }
  return convertNumbers(column, stored, (i) => report(i, "type_mismatch", reason));
}

function alignElements(list: Column, index: number, target: Field, path: readonly string[], rules: Rules): Column {
  const child = list.children[index]!;
  const { offsets } = list;
  const report: Report = (i, code, reason) => rules.report(ownerOf(offsets!, i), code, reason);
  return alignField(child, target, { length: child.length, validity: undefined }, path, { ...rules, report })!;
}

/** The list that an element belongs to: the last one that begins at or before it. */
function ownerOf(offsets: Int32Array, element: number): number {
  let low = 0;
  let high = offsets.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (offsets[middle]! <= element) low = middle;
    else high = middle;
  }
  return low;
}

function checkJson(column: Column, misfit: (index: number) => void): void {
  const read = valueReader(column, "exact");
  for (let i = 0; i < column.length; i++) {
    const text = read(i);
    if (text === null) continue;
    try {
      JSON.parse(text as string);
    } catch {
      misfit(i);
    }
  }
}
