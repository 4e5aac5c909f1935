import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import { ApiError } from '../../core/errors.ts';
import type { JsonObject } from './payload.ts';
import { plainSchema } from './plain-schema.ts';
import { type SchemaCost, schemaCost } from './schema-cost.ts';
import { SchemaPatterns } from './schema-patterns.ts';
import { quoted } from './schema-references.ts';

/** Limits of a schema. */
export interface SchemaLimits {
  schemaStepsMax: number;
  schemaPatternStatesMax: number;
}

const metaSchema = new Ajv2020({ strict: false, validateFormats: false });
const metaSchemaId = 'https://json-schema.org/draft/2020-12/schema';

/**
 * Refuses invalid schemas, those that take long to compile, and those with which a body could take more than
 * `schemaStepsMax` steps for one value, so that no device can stall a worker. Returns what it may cost. Takes up to
 * some hundred milliseconds: for a thread of its own.
 * @throws ApiError invalid_schema, with the reason.
 */
export function checkSchema(schema: JsonObject, limits: SchemaLimits): SchemaCost {
  try {
    // Ignores its own `$schema`, which may name just a part of the meta-schema.
    if (!metaSchema.validate(metaSchemaId, schema)) {
      throw new Error(metaSchemaFault(metaSchema.errors));
    }
    const plain = plainSchema(schema);
    return schemaCost(
      plain,
      new SchemaPatterns(schema, limits.schemaPatternStatesMax),
      limits.schemaStepsMax,
    );
  } catch (error) {
    const reason = (error as Error).message.slice(0, 300);
    throw new ApiError('invalid_schema', { msg: `This is not a usable JSON Schema 2020-12: ${reason}` });
  }
}

/** Says why a schema does not match its meta-schema. */
function metaSchemaFault(errors: readonly ErrorObject[] | null | undefined): string {
  // Only `type` has fixed values; the errors around it name alternatives that lead nowhere.
  const ofType = errors?.findLast(({ keyword }) => keyword === 'enum');
  const error = ofType ?? errors?.[0];
  const where = error?.instancePath ? quoted(error.instancePath) : 'the schema';
  if (ofType === undefined) return `${where} ${error?.message?.replaceAll(',', ' or ') ?? 'is not valid'}`;
  const { allowedValues } = ofType.params as { allowedValues: readonly string[] };
  const orList = where.endsWith('/type') ? ', or a list of them' : '';
  return `${where} must be one of ${allowedValues.join(', ')}${orList}`;
}
