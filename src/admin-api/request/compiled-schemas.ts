import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import fastJsonStringify from 'fast-json-stringify';

/**
 * The schemas of the admin API as functions, each compiled when it is used first: to compile them all was half
 * of the main thread's work of a start, and most are never used. They are our own, and not held against the schema of
 * schemas.
 */
const options = { allErrors: true, strict: false, validateSchema: false };
/** Text in a path or query becomes a number, or a list of one, where that is wanted; in a body nothing becomes anything. */
const ofText = new Ajv({ ...options, useDefaults: true, coerceTypes: 'array' });
const ofBody = new Ajv(options);

/** What Fastify asks of a validator: why not is looked up behind it. */
interface Validator {
  (value: unknown): boolean;
  errors?: ErrorObject[] | null;
}

/** Of one part of a request: `body`, `querystring`, `params` or `headers`. */
export function validatorOf(schema: object, part: string | undefined): Validator {
  const ajv = part === 'body' ? ofBody : ofText;
  // A filter that is mistyped must not stand for none.
  const known = part === 'querystring' ? { ...schema, additionalProperties: false } : schema;
  let compiled: ValidateFunction | undefined;
  const validate: Validator = (value) => {
    compiled ??= ajv.compile(known);
    const isValid = compiled(value);
    validate.errors = compiled.errors ?? null;
    return isValid;
  };
  return validate;
}

/** Of an answer. */
export function serializerOf(schema: object): (value: unknown) => string {
  let compiled: ((value: unknown) => string) | undefined;
  return (value) => {
    compiled ??= fastJsonStringify(schema);
    return compiled(value);
  };
}
