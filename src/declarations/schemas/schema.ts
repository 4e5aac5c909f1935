import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Settings } from '../../core/config/settings.ts';
import { ApiError, type FieldError, unavailable } from '../../core/errors.ts';
import { Pattern } from './pattern.ts';
import type { JsonObject } from './payload.ts';
import { plainSchema } from './plain-schema.ts';
import { exhaustiveSteps, type SchemaCost, schemaCost } from './schema-cost.ts';
import { metaSchemaFault, schemaFault } from './schema-faults.ts';
import { numberUniqueItems } from './unique-items.ts';

export const schemaKinds = ['datapoint', 'message', 'mail'] as const;
export type SchemaKind = (typeof schemaKinds)[number];

/** Limits of an error report; a path can be as long as the body. */
const reportedErrorsMax = 20;
const reportedPathLengthMax = 256;
/** Budget for reporting every failing path instead of the first: about a millisecond. */
const reportStepsMax = 250_000;
/**
 * A check that took longer than this multiple of its limit is not repeated to confirm it, since it stalls the thread.
 */
const repeatedCheckFactor = 10;
const disabledRetrySeconds = 60;

const metaSchema = new Ajv2020({ strict: false, validateFormats: false });
const metaSchemaId = 'https://json-schema.org/draft/2020-12/schema';

/**
 * Compiles JSON Schema 2020-12 (D12) with `format` as an annotation. One Ajv instance per schema, so that ids never
 * clash.
 * @throws Error if it does not compile, or compiles to a promise.
 */
function compile(plain: JsonObject, allErrors: boolean): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors,
    code: {
      regExp: Object.assign((source: string) => new Pattern(source), { code: 'new Pattern' }),
      // Optimizing takes four times as long as all the rest, for the same speed.
      optimize: false,
    },
    // Otherwise a large subschema with a thousand references is compiled a thousand times.
    inlineRefs: false,
    // Otherwise every object would satisfy `required: ["constructor"]`.
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
 * Refuses invalid schemas, and those with which a body could take more than `stepsMax` steps for one value, so that
 * no device can stall a worker. Returns what it may cost.
 * @throws ApiError invalid_schema, with the reason.
 */
export function checkSchema(schema: JsonObject, stepsMax: number): SchemaCost {
  try {
    // Ignores its own `$schema`, which may name just a part of the meta-schema.
    if (!metaSchema.validate(metaSchemaId, schema)) {
      throw new Error(metaSchemaFault(metaSchema.errors));
    }
    const plain = plainSchema(schema);
    const cost = schemaCost(plain, stepsMax);
    compile(plain, false);
    return cost;
  } catch (error) {
    const reason = schemaFault(error as Error, schema).slice(0, 300);
    throw new ApiError('invalid_schema', { msg: `This is not a usable JSON Schema 2020-12: ${reason}` });
  }
}

/** Limits and notification of a schema. */
export interface SchemaWatch {
  readonly settings: Settings<{ schemaCheckMillisecondsMax: number }>;
  /** Called once, with the reason for disabling it. */
  onDisabled(reason: string): void;
}

/** For a schema that nothing is checked against. */
export const unwatched: SchemaWatch = {
  settings: { current: { schemaCheckMillisecondsMax: Number.POSITIVE_INFINITY } },
  onDisabled() {},
};

/** A stored schema, compiled on first use. */
export class Schema {
  readonly text: string;
  /** Why it is disabled. */
  #disabled: string | undefined;
  readonly #watch: SchemaWatch;
  #plain: JsonObject | undefined;
  #validate: ValidateFunction | undefined;
  /** Continues after the first error; compiled, like `#steps`, on the first failure. */
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
   * `bytes` is the length of the parsed body.
   * @throws ApiError schema_mismatch with the failing paths, or only the first if finding all would take long;
   * unavailable if the schema is disabled.
   */
  check(value: JsonObject, bytes: number): void {
    const validate = this.#validate ?? this.#compiled();
    const startedAtMs = performance.now();
    const errors = this.#errorsOf(validate, value, bytes);
    const milliseconds = performance.now() - startedAtMs;
    if (milliseconds > this.#watch.settings.current.schemaCheckMillisecondsMax)
      this.#confirmSlow(value, bytes, milliseconds);
    if (errors !== undefined) throw new ApiError('schema_mismatch', { errors });
  }

  /** Compiles the schema. @throws ApiError unavailable if it is disabled, or becomes so. */
  #compiled(): ValidateFunction {
    if (this.#disabled === undefined) {
      try {
        this.#plain = plainSchema(JSON.parse(this.text) as JsonObject);
        this.#validate = compile(this.#plain, false);
        return this.#validate;
      } catch {
        // Devices read this too; the reason is shown when it is put again.
        this.#disable('it cannot be compiled');
      }
    }
    return this.#refuse();
  }

  #refuse(): never {
    const msg = `This schema is disabled until it is put again: ${this.#disabled}.`;
    throw unavailable(msg, disabledRetrySeconds);
  }

  /**
   * Confirms a slow check by repeating it: the thread may have been suspended in the middle, by a sleeping machine,
   * say.
   */
  #confirmSlow(value: JsonObject, bytes: number, milliseconds: number): void {
    const { schemaCheckMillisecondsMax: limit } = this.#watch.settings.current;
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
