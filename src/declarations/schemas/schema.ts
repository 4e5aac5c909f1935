import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { ApiError, type FieldError, unavailable } from '../../core/errors.ts';
import { Pattern } from './pattern.ts';
import type { JsonObject } from './payload.ts';
import { plainSchema } from './plain-schema.ts';
import { exhaustiveSteps, schemaSteps } from './schema-cost.ts';
import { numberUniqueItems } from './unique-items.ts';

export const schemaKinds = ['datapoint', 'message', 'mail'] as const;
export type SchemaKind = (typeof schemaKinds)[number];

/** Enough to mend a device by; and a path can be as long as the body. */
const reportedErrorsMax = 20;
const reportedPathLengthMax = 256;
/** Steps that may be spent on finding every failing place of a body in place of the first: a millisecond's. */
const reportStepsMax = 250_000;
/** A check that took longer than this many times its limit is not done again to make sure: it stalls the thread. */
const repeatedCheckFactor = 10;
const disabledRetrySeconds = 60;

const metaSchema = new Ajv2020({ strict: false, validateFormats: false });
const metaSchemaId = 'https://json-schema.org/draft/2020-12/schema';

/**
 * JSON Schema 2020-12 (D12); `format` is an annotation there. Each schema has an instance, so ids never clash.
 * @throws Error for what cannot be compiled, and for what compiles to a promise.
 */
function compile(plain: JsonObject, allErrors: boolean): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors,
    code: {
      regExp: Object.assign((source: string) => new Pattern(source), { code: 'new Pattern' }),
      // Takes four times as long as all the rest, for the same speed.
      optimize: false,
    },
    // Else a large subschema that a thousand others refer to is compiled a thousand times.
    inlineRefs: false,
    // Else `required: ["constructor"]` would be met by every object.
    ownProperties: true,
    strict: false,
    validateFormats: false,
    meta: false,
    validateSchema: false,
    logger: false,
  });
  numberUniqueItems(ajv);
  const validate = ajv.compile(plain);
  if ('$async' in validate) throw new Error('it compiles to a promise');
  return validate;
}

/**
 * Refuses what is no schema, and one that would let a body take more than `stepsMax` steps for each of its
 * values, so that no device can hold up a worker with what it sends.
 * @throws ApiError invalid_schema, saying why.
 */
export function checkSchema(schema: JsonObject, stepsMax: number): void {
  try {
    // Not by its own `$schema`, which may name a part of the meta-schema.
    if (!metaSchema.validate(metaSchemaId, schema)) {
      throw new Error(metaSchema.errorsText(metaSchema.errors, { dataVar: 'schema' }));
    }
    const plain = plainSchema(schema);
    schemaSteps(plain, stepsMax);
    compile(plain, false);
  } catch (error) {
    const reason = (error as Error).message.slice(0, 300);
    throw new ApiError('invalid_schema', { msg: `This is not a usable JSON Schema 2020-12: ${reason}` });
  }
}

/** What a schema goes by, and whom it tells. */
export interface SchemaWatch {
  readonly limits: { readonly schemaCheckMillisecondsMax: number };
  /** Told once, why no body is held against it any more. */
  onDisabled(reason: string): void;
}

/** Of a schema that nothing is held against. */
export const unwatched: SchemaWatch = {
  limits: { schemaCheckMillisecondsMax: Number.POSITIVE_INFINITY },
  onDisabled() {},
};

/** A stored schema, compiled when it is first needed. */
export class Schema {
  readonly text: string;
  /** Why no body is held against it. */
  #disabled: string | undefined;
  readonly #watch: SchemaWatch;
  #plain: JsonObject | undefined;
  #validate: ValidateFunction | undefined;
  /** Goes on after the first failing place; made, as is the next, when there is one. */
  #validateAll: ValidateFunction | undefined;
  #steps: number | undefined;

  constructor(text: string, watch: SchemaWatch, disabled?: string) {
    this.text = text;
    this.#watch = watch;
    this.#disabled = disabled;
  }

  get disabled(): string | undefined {
    return this.#disabled;
  }

  /**
   * `bytes` is the length of the body that the value was read from.
   * @throws ApiError schema_mismatch with the failing paths: with the first alone where to find all of them
   * would take long; unavailable where it is disabled.
   */
  check(value: JsonObject, bytes: number): void {
    const validate = this.#validate ?? this.#open();
    const startedAtMs = performance.now();
    const errors = this.#errorsOf(validate, value, bytes);
    const milliseconds = performance.now() - startedAtMs;
    if (milliseconds > this.#watch.limits.schemaCheckMillisecondsMax)
      this.#makeSure(value, bytes, milliseconds);
    if (errors !== undefined) throw new ApiError('schema_mismatch', { errors });
  }

  /** Compiles it. @throws ApiError unavailable where it is disabled, or has to be. */
  #open(): ValidateFunction {
    if (this.#disabled === undefined) {
      try {
        this.#plain = plainSchema(JSON.parse(this.text) as JsonObject);
        this.#validate = compile(this.#plain, false);
        return this.#validate;
      } catch {
        // Devices read this too; whoever puts it again is told why.
        this.#disable('it cannot be compiled');
      }
    }
    return this.#refuse();
  }

  #refuse(): never {
    const msg = `This schema is disabled until it is put again: ${this.#disabled}.`;
    throw unavailable(msg, disabledRetrySeconds);
  }

  /** Not for a thread that stood still for another reason in the midst of a check: the machine slept, say. */
  #makeSure(value: JsonObject, bytes: number, milliseconds: number): void {
    const { schemaCheckMillisecondsMax: limit } = this.#watch.limits;
    let least = milliseconds;
    if (milliseconds <= limit * repeatedCheckFactor && this.#validate !== undefined) {
      const startedAtMs = performance.now();
      this.#errorsOf(this.#validate, value, bytes);
      least = Math.min(milliseconds, performance.now() - startedAtMs);
    }
    if (least <= limit) return;
    this.#validate = undefined;
    this.#validateAll = undefined;
    this.#disable(
      `a body of ${bytes} bytes took ${Math.round(least)} ms to check (schemaCheckMillisecondsMax)`,
    );
  }

  #disable(reason: string): void {
    this.#disabled = reason;
    this.#watch.onDisabled(reason);
  }

  #errorsOf(validate: ValidateFunction, value: JsonObject, bytes: number): FieldError[] | undefined {
    try {
      return validate(value) ? undefined : report(this.#allErrorsOf(value, bytes) ?? validate.errors ?? []);
    } catch (error) {
      if (error instanceof RangeError) return [{ path: '', msg: 'is nested too deeply' }];
      // Ajv's own code for some schemas throws: unevaluatedProperties behind a $ref in a oneOf, with Ajv 8.20.
      this.#validate = undefined;
      this.#disable('its check fails');
      return this.#refuse();
    }
  }

  #allErrorsOf(value: JsonObject, bytes: number): readonly ErrorObject[] | undefined {
    const plain = this.#plain ?? {};
    this.#steps ??= exhaustiveSteps(plain);
    if (this.#steps * bytes > reportStepsMax) return undefined;
    this.#validateAll ??= compile(plain, true);
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
