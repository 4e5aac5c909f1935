import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { ApiError, type FieldError } from '../core/errors.ts';
import { Pattern } from './pattern.ts';
import type { JsonObject } from './payload.ts';
import { schemaSteps } from './schema-cost.ts';

export const schemaKinds = ['datapoint', 'message', 'mail'] as const;
export type SchemaKind = (typeof schemaKinds)[number];

/** Enough to mend a device by; and a path can be as long as the body. */
const reportedErrorsMax = 20;
const reportedPathLengthMax = 256;
/** Steps that may be spent on finding every failing place of a body in place of the first: a millisecond's. */
const reportStepsMax = 250_000;

const metaSchema = new Ajv2020({ strict: false, validateFormats: false });

/** JSON Schema 2020-12 (D12); `format` is an annotation there. Each schema has an instance, so ids never clash. */
function compile(schema: JsonObject, allErrors: boolean): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors,
    code: { regExp: Object.assign((source: string) => new Pattern(source), { code: 'new Pattern' }) },
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

/**
 * Refuses what is no schema, and one that would let a body take more than `stepsMax` steps for each of its
 * values, so that no device can hold up a worker with what it sends.
 * @throws ApiError invalid_schema, saying why.
 */
export function checkSchema(schema: JsonObject, stepsMax: number): void {
  try {
    if (!metaSchema.validateSchema(schema)) {
      throw new Error(metaSchema.errorsText(metaSchema.errors, { dataVar: 'schema' }));
    }
    schemaSteps(schema, stepsMax);
    compile(schema, false);
  } catch (error) {
    const reason = (error as Error).message.slice(0, 300);
    throw new ApiError('invalid_schema', { msg: `This is not a usable JSON Schema 2020-12: ${reason}` });
  }
}

/** A stored schema, compiled when it is first needed. */
export class Schema {
  readonly text: string;
  #validate: ValidateFunction | undefined;
  /** Goes on after the first failing place; made, as is the next, when there is one. */
  #validateAll: ValidateFunction | undefined;
  #steps: number | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /**
   * `bytes` is the length of the body that the value was read from.
   * @throws ApiError schema_mismatch with the failing paths: with the first alone where to find all of them
   * would take long.
   */
  check(value: JsonObject, bytes: number): void {
    this.#validate ??= compile(this.#schema, false);
    try {
      if (this.#validate(value)) return;
      throw new ApiError('schema_mismatch', { errors: report(this.#errorsOf(value, bytes)) });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new ApiError('schema_mismatch', { errors: [{ path: '', msg: 'is nested too deeply' }] });
    }
  }

  get #schema(): JsonObject {
    return JSON.parse(this.text) as JsonObject;
  }

  #errorsOf(value: JsonObject, bytes: number): readonly ErrorObject[] {
    this.#steps ??= schemaSteps(this.#schema, Number.MAX_SAFE_INTEGER);
    if (this.#steps * bytes > reportStepsMax) return this.#validate?.errors ?? [];
    this.#validateAll ??= compile(this.#schema, true);
    this.#validateAll(value);
    return this.#validateAll.errors ?? [];
  }
}

function report(errors: readonly ErrorObject[]): FieldError[] {
  return errors.slice(0, reportedErrorsMax).map(({ instancePath, message }) => ({
    path: instancePath.slice(0, reportedPathLengthMax),
    msg: message ?? 'does not match',
  }));
}
