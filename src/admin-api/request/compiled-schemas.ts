import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import fastJsonStringify from 'fast-json-stringify';

/**
 * Compiles the schemas of the admin API on first use: compiling all of them was half of the main thread's work at
 * start, and most are never used. They are our own, so they are not validated against the meta-schema.
 */
const options = { allErrors: true, strict: false, validateSchema: false };
/** Coerces text of a path or query to a number or a list of one; values of a body are not coerced. */
const ofText = new Ajv({ ...options, useDefaults: true, coerceTypes: 'array' });
const ofBody = new Ajv(options);

/** A validator as Fastify expects it; it reads `errors` after a failure. */
interface Validator {
  (value: unknown): boolean;
  errors?: ErrorObject[] | null;
}

/** Creates a validator for one part of a request: `body`, `querystring`, `params` or `headers`. */
export function validatorOf(schema: object, part: string | undefined): Validator {
  const ajv = part === 'body' ? ofBody : ofText;
  // A mistyped filter must not be ignored.
  const strict = part === 'querystring' ? { ...schema, additionalProperties: false } : schema;
  let compiled: ValidateFunction | undefined;
  const validate: Validator = (value) => {
    compiled ??= ajv.compile(strict);
    const isValid = compiled(value);
    validate.errors = compiled.errors ?? null;
    return isValid;
  };
  return validate;
}

/** Creates a serializer for an answer. */
export function serializerOf(schema: object): (value: unknown) => string {
  let compiled: ((value: unknown) => string) | undefined;
  return (value) => {
    compiled ??= fastJsonStringify(schema);
    return compiled(value);
  };
}
