/** `eider types`: a TypeScript interface of the tables, for typed rows. */

import { type DataType, type Field, type Schema, storedType } from "@eider/core";
import { Command } from "commander";
import { type Context, type JsonFlag, print, READ, withLake } from "../context.js";

const HELP = `
Examples:
  eider types ./lake > tables.ts

  import type { Tables } from "./tables.js";
  const rows = await lake.sql<Tables["events"]>("FROM events");`;

export function typesCommand(context: Context): Command {
  return new Command("types")
    .summary("print the row types of the tables as TypeScript")
    .description("Print a TypeScript interface with the row type of each table, for typed queries.")
    .argument("<lake>", "folder of the lake")
    .addHelpText("after", HELP)
    .action(async (where: string, flags: JsonFlag) => {
      const tables = await withLake(where, READ, (lake) => lake.tables());
      const rows = tables.map(({ name, schema }) => `  ${propertyName(name)}: ${tableType(schema)};\n`);
      const source = `/** Row types of the tables, as lake.sql returns them with values: "exact". */\nexport interface Tables {\n${rows.join("")}}\n`;
      await print(context, flags, { source }, () => source);
    });
}

function tableType({ fields }: Schema): string {
  // What has no value yet has no type and reads as null; within a struct it is left out.
  return structType(
    fields.map((field) => ({ ...field, type: storedType(field.type) ?? { kind: "unknown" } })),
    "  ",
  );
}

function structType(fields: readonly Field[], indent: string): string {
  if (fields.length === 0) return "Record<string, never>";
  const lines = fields.map((field) => `${indent}  ${propertyName(field.name)}: ${fieldType(field, `${indent}  `)};\n`);
  return `{\n${lines.join("")}${indent}}`;
}

function fieldType(field: Field, indent: string): string {
  const type = valueType(field.type, indent);
  return field.nullable && type !== "null" ? `${type} | null` : type;
}

function valueType(type: DataType, indent: string): string {
  switch (type.kind) {
    case "bool":
      return "boolean";
    case "int64":
    case "uint64":
      return "bigint";
    case "int8":
    case "int16":
    case "int32":
    case "uint8":
    case "uint16":
    case "uint32":
    case "float32":
    case "float64":
      return "number";
    case "binary":
    case "fixed":
      return "Uint8Array";
    case "list":
      return `Array<${fieldType(type.element, indent)}>`;
    case "map":
      return `Map<${valueType(type.key.type, indent)}, ${fieldType(type.value, indent)}>`;
    case "struct":
      return structType(type.fields, indent);
    case "unknown":
      return "null";
    default:
      return "string";
  }
}

function propertyName(name: string): string {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : JSON.stringify(name);
}
