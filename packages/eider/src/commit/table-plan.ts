/** What a handle says about its table, and whether the table that exists agrees. */

import { type Catalog, type Operation, parseTableName } from "@eider/catalog";
import {
  assignFieldIds,
  childFields,
  type DataType,
  type Field,
  formatType,
  isStandardSchema,
  lastFieldId,
  nameKey,
  parseOrderBy,
  parsePartitionBy,
  parseSchema,
  type Schema,
  SchemaError,
  type StandardSchema,
  schemaFromStandard,
  tableFolder,
  widen,
} from "@eider/core";
import type { TableOptions } from "../options.js";
import type { TableState } from "./pending-batch.js";

/** The options of a handle, checked as far as they can be without a table. */
export interface TablePlan {
  readonly name: string;
  /** Of the table, should it be created. Ids assigned. */
  readonly schema: Schema | undefined;
  readonly validator: StandardSchema | undefined;
  /** The columns that the validator describes, ids 0. Unlike a declared schema they follow the program. */
  readonly described: Schema | undefined;
  readonly partitionBy: readonly string[] | undefined;
  readonly orderBy: readonly string[] | undefined;
}

/** @throws SchemaError, InvalidInputError for options that can never be right */
export function planTable(name: string, options: TableOptions): TablePlan {
  parseTableName(name);
  const { schema: given, partitionBy, orderBy } = options;
  if (isStandardSchema(given)) {
    const described = schemaFromStandard(given);
    const schema = described && assignFieldIds(described);
    return { name, schema, validator: given, described, partitionBy, orderBy };
  }
  const schema = given === undefined ? undefined : assignFieldIds(parseSchema(given));
  if (schema) canonicalLayout(partitionBy ?? [], orderBy ?? [], schema);
  return { name, schema, validator: undefined, described: undefined, partitionBy, orderBy };
}

/** The table's schema, and after it the columns that a validator describes and the table lacks. Ids assigned. */
export function withColumns(table: TableState, described: Schema): Schema {
  const known = new Set(table.schema.fields.map(({ name }) => nameKey(name)));
  const added = described.fields.filter(({ name }) => !known.has(nameKey(name)));
  return assignFieldIds({ fields: [...table.schema.fields, ...added] }, table.lastFieldId);
}

/** Partition and order expressions in the form the catalog keeps. @throws SchemaError for unknown columns */
export function canonicalLayout(
  partitionBy: readonly string[],
  orderBy: readonly string[],
  schema: Schema,
): { partitionBy: readonly string[]; orderBy: readonly string[] } {
  return {
    partitionBy: partitionBy.map((text) => parsePartitionBy(text, schema).text),
    orderBy: parseOrderBy(orderBy, schema).map((key) => key.text),
  };
}

/**
 * The folder of a new table: its plain name, unless an earlier table has that.
 * @param draft what is committed with it, which may make that earlier table
 */
export async function newFolder(
  catalog: Catalog,
  plan: TablePlan,
  id: string,
  draft: readonly Operation[] = [],
): Promise<string> {
  const folder = tableFolder(plan.name);
  const isTaken = draft.some((one) => one.op === "schema" && one.create?.folder === folder);
  return isTaken || (await catalog.folderUsed(folder)) ? tableFolder(plan.name, id) : folder;
}

type SchemaOperation = Extract<Operation, { op: "schema" }>;
export type TableCreation = SchemaOperation & { readonly create: NonNullable<SchemaOperation["create"]> };

/** The operation that creates the table with what the handle declares, or with the schema of its first batch. */
export function tableOperation(
  plan: TablePlan,
  id: string,
  folder: string,
  schema: Schema = plan.schema ?? { fields: [] },
): TableCreation {
  return {
    op: "schema",
    table: id,
    version: 1,
    schema,
    lastFieldId: lastFieldId(schema),
    create: { name: plan.name, folder, ...canonicalLayout(plan.partitionBy ?? [], plan.orderBy ?? [], schema) },
  };
}

/**
 * Options given for a table that exists must be the table's own.
 * @throws SchemaError `table_differs`, naming the option and both values
 */
export function assertMatches(plan: TablePlan, table: TableState): void {
  const differ = (option: string, given: string, found: string): never => {
    throw new SchemaError(
      "table_differs",
      `table ${table.name} exists with ${option} ${found}, not ${given}: leave the option out, or use another table`,
      { subject: table.name },
    );
  };
  const compare = (option: "partitionBy" | "orderBy", given: readonly string[]): void => {
    if (JSON.stringify(given) !== JSON.stringify(table[option])) {
      differ(option, JSON.stringify(given), JSON.stringify(table[option]));
    }
  };
  const { schema } = table;
  if (plan.partitionBy) compare("partitionBy", canonicalLayout(plan.partitionBy, [], schema).partitionBy);
  if (plan.orderBy) compare("orderBy", canonicalLayout([], plan.orderBy, schema).orderBy);
  if (plan.validator) return;
  for (const field of plan.schema?.fields ?? []) {
    const found = schema.fields.find((other) => nameKey(other.name) === nameKey(field.name));
    if (!found) differ(`no column`, JSON.stringify(field.name), JSON.stringify(schema.fields.map((f) => f.name)));
    else if (!covers(found, field)) {
      differ(`column ${JSON.stringify(found.name)} of type`, formatType(field.type), formatType(found.type));
    }
  }
}

/** Whether a column is what was declared, or what that may have become since by evolution. */
function covers(found: Field, declared: Field): boolean {
  if (formatType(found.type) === formatType(declared.type)) return true;
  const below = childFields(found.type);
  if (found.type.kind === declared.type.kind && below.length > 0) {
    return childFields(declared.type).every((child) =>
      below.some((other) => nameKey(other.name) === nameKey(child.name) && covers(other, child)),
    );
  }
  // What was stored when it widened is not known here; it was small enough.
  const widened = widen(declared.type, found.type, { min: 0n, max: 0n });
  return widened !== undefined && formatType(widened) === formatType(found.type);
}

/**
 * A partition column may not change what its stored values mean.
 * @throws SchemaError `partition_column` where a column that rows are partitioned by became another kind of number
 */
export function assertPartitionsKept(table: TableState, next: Schema): void {
  for (const text of table.partitionBy) {
    const { field: column } = parsePartitionBy(text, table.schema);
    const before = table.schema.fields.find((field) => field.id === column.id)?.type;
    const after = next.fields.find((field) => field.id === column.id)?.type;
    if (before && after && before.kind !== "unknown" && kindOf(before) !== kindOf(after)) {
      throw new SchemaError(
        "partition_column",
        `column ${JSON.stringify(column.name)} partitions table ${table.name} and cannot change from ${formatType(before)} to ${formatType(after)}: fix the values, or use another table`,
        { subject: column.name },
      );
    }
  }
}

/** Types whose partition values compare: integers of any width, and decimals of one scale (their values are unscaled). */
function kindOf(type: DataType): string {
  if (type.kind === "decimal") return `decimal of scale ${type.scale}`;
  return /^u?int\d+$/.test(type.kind) ? "integer" : formatType(type);
}
