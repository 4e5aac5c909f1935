import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { ApiError, type FieldError } from '../core/errors.ts';
import type { JsonObject } from './payload.ts';

export const schemaKinds = ['datapoint', 'message', 'mail'] as const;
export type SchemaKind = (typeof schemaKinds)[number];

/** Enough to mend a device by; and a path can be as long as the body. */
const reportedErrorsMax = 20;
const reportedPathLengthMax = 256;

const metaSchema = new Ajv2020({ strict: false, validateFormats: false });

/** JSON Schema 2020-12 (D12); `format` is an annotation there. Each schema has an instance, so ids never clash. */
function compile(schema: JsonObject): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors: true,
    // Else `required: ["constructor"]` would be met by every object.
    ownProperties: true,
    strict: false,
    validateFormats: false,
    meta: false,
    validateSchema: false,
    logger: false,
  });
  return ajv.compile(schema);
}

/** @throws ApiError invalid_schema, saying why. */
export function checkSchema(schema: JsonObject): void {
  try {
    if (!metaSchema.validateSchema(schema)) {
      throw new Error(metaSchema.errorsText(metaSchema.errors, { dataVar: 'schema' }));
    }
    compile(schema);
  } catch (error) {
    const reason = (error as Error).message.slice(0, 300);
    throw new ApiError('invalid_schema', { msg: `This is not a usable JSON Schema 2020-12: ${reason}` });
  }
}

/** A stored schema, compiled when it is first needed. */
export class Schema {
  readonly text: string;
  #validate: ValidateFunction | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** @throws ApiError schema_mismatch with the failing paths. */
  check(value: JsonObject): void {
    this.#validate ??= compile(JSON.parse(this.text) as JsonObject);
    let matches: boolean;
    try {
      matches = this.#validate(value) === true;
    } catch (error) {
      if (error instanceof RangeError) {
        throw new ApiError('schema_mismatch', { errors: [{ path: '', msg: 'is nested too deeply' }] });
      }
      throw error;
    }
    if (!matches) throw new ApiError('schema_mismatch', { errors: report(this.#validate.errors ?? []) });
  }
}

function report(errors: readonly ErrorObject[]): FieldError[] {
  return errors.slice(0, reportedErrorsMax).map(({ instancePath, message }) => ({
    path: instancePath.slice(0, reportedPathLengthMax),
    msg: message ?? 'does not match',
  }));
}
