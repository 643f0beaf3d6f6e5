/**
 * Validators of any library, by the interfaces that they share: Standard Schema, which checks values, and Standard JSON
 * Schema, which describes them (https://standardschema.dev, https://standardschema.dev/json-schema). Only types: no
 * library is imported.
 */

import { SchemaError } from "./errors.js";
import { schemaFromJsonSchema } from "./json-schema.js";
import { type Schema, withoutRequired } from "./schema.js";

/** A Standard Schema, version 1: what zod, valibot, ArkType and others make. */
export interface StandardSchema<In = unknown, Out = unknown> {
  readonly "~standard": StandardProperties<In, Out>;
}

interface StandardProperties<In, Out> {
  readonly version: 1;
  readonly vendor: string;
  readonly validate: (value: unknown) => StandardResult<Out> | Promise<StandardResult<Out>>;
  /** For the compiler only. */
  readonly types?: { readonly input: In; readonly output: Out } | undefined;
  readonly jsonSchema?: {
    readonly output: (options: {
      readonly target: "draft-2020-12";
      readonly libraryOptions?: Record<string, unknown>;
    }) => Record<string, unknown>;
  };
}

/** The value, perhaps changed, or what is wrong with it. */
export type StandardResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Some libraries' schemas are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return false;
  const standard = (value as { readonly "~standard"?: Partial<StandardProperties<unknown, unknown>> | null })[
    "~standard"
  ];
  return typeof standard === "object" && standard !== null && typeof standard.validate === "function";
}

/**
 * The columns of what a validator lets through, ids 0; undefined where it cannot say, so that they are inferred from
 * the rows. All are nullable: which values must be there is the validator's to say, and it may say otherwise next year.
 * @throws SchemaError `duplicate_field`, `bad_name`
 */
export function schemaFromStandard(validator: StandardSchema): Schema | undefined {
  const described = describe(validator);
  if (described === undefined) return undefined;
  try {
    return withoutRequired(schemaFromJsonSchema(described));
  } catch (error) {
    // Not an object at its top, or JSON Schema that we cannot follow: its rows will tell.
    if (error instanceof SchemaError && error.code === "bad_json_schema") return undefined;
    throw error;
  }
}

function describe(validator: StandardSchema): Record<string, unknown> | undefined {
  try {
    return validator["~standard"].jsonSchema?.output({ target: "draft-2020-12", libraryOptions: ZOD_OPTIONS });
  } catch {
    // The interface says: "May throw if conversion is not supported."
    return undefined;
  }
}

/**
 * Parameters of zod's `toJSONSchema`, which throws at the first Date otherwise. What JSON cannot express is `{}` then,
 * any value; other libraries know none of these names.
 */
const ZOD_OPTIONS = {
  unrepresentable: "any",
  override: ({ zodSchema, jsonSchema }: ZodOverride): void => {
    const definition = zodSchema?._zod?.def;
    const type = definition?.type;
    // Of local times it says date-time as well, which have a zone everywhere else (RFC 3339).
    if (definition?.format === "datetime" && definition.local === true) delete jsonSchema.format;
    if (type === "date") Object.assign(jsonSchema, { type: "string", format: "date-time" });
    if (type === "bigint") jsonSchema.type = "integer";
  },
};

interface ZodOverride {
  readonly zodSchema?: {
    readonly _zod?: { readonly def?: { readonly type?: unknown; readonly format?: unknown; readonly local?: unknown } };
  };
  readonly jsonSchema: Record<string, unknown>;
}
