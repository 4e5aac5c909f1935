import type { Settings } from '../../core/config/settings.ts';
import { ApiError, unavailable } from '../../core/errors.ts';
import { CheckAllowance, type CheckBudget, CheckCost } from '../schema-budgets/check-budget.ts';
import type { CompileBudget } from '../schema-budgets/compile-budget.ts';
import type { JsonObject } from './payload.ts';
import { plainSchema } from './plain-schema.ts';
import { exhaustiveSteps } from './schema-cost.ts';
import { patternsSize, SchemaPatterns } from './schema-patterns.ts';
import { type Mismatch, TooManyOperations } from './validator/validation.ts';
import { Validator } from './validator/validator.ts';

export const schemaKinds = ['datapoint', 'message', 'mail', 'reply'] as const;
export type SchemaKind = (typeof schemaKinds)[number];

/**
 * A check that took longer than this multiple of its limit is not repeated to confirm it, since it stalls the thread.
 */
const repeatedCheckFactor = 2;
const disabledRetrySeconds = 60;
/**
 * Operations of checking one body, as a multiple of the steps that checking one of its values may take: a quarter of a
 * second by default. No body of 64 KiB comes near that does not mean to.
 */
const operationsPerStep = 25_000;
/** Bytes of a schema compiled in the time of one state of a pattern. */
const bytesPerState = 16;

/** Limits of the schemas of a thread. */
export interface SchemaSettings {
  schemaStepsMax: number;
  schemaCheckMillisecondsMax: number;
  schemaCheckMillisecondsPerSecondMax: number;
  schemaPatternStatesMax: number;
}

/** Limits and notification of a schema. */
export interface SchemaWatch {
  readonly settings: Settings<SchemaSettings>;
  /** Budget of the fleet's compilations on this thread. */
  readonly compilations?: CompileBudget;
  /** Budget of the time that its checks take of this thread. */
  readonly checks?: CheckBudget;
  /** Called once, with the reason for disabling it. */
  onDisabled(reason: string): void;
}

/** For a schema that nothing is checked against, or that has just been checked itself. */
export const unwatched: SchemaWatch = {
  settings: {
    current: {
      schemaStepsMax: Number.POSITIVE_INFINITY,
      schemaCheckMillisecondsMax: Number.POSITIVE_INFINITY,
      schemaCheckMillisecondsPerSecondMax: 0,
      schemaPatternStatesMax: Number.POSITIVE_INFINITY,
    },
  },
  onDisabled() {},
};

/** A schema that is ready to check bodies. */
interface Compiled {
  validator: Validator;
  /** Upper bound of the steps a byte that reporting every failing path takes; determined on the first failure. */
  exhaustiveSteps: () => number;
}

/** A stored schema, compiled on first use. */
export class Schema {
  readonly text: string;
  /** Why it is disabled. */
  #disabled: string | undefined;
  readonly #watch: SchemaWatch;
  #compiled: Compiled | undefined;
  readonly #cost = new CheckCost();
  /** Cost of compiling it, as states of patterns; counted once. */
  #states: number | undefined;

  constructor(text: string, watch: SchemaWatch, disabled?: string) {
    this.text = text;
    this.#watch = watch;
    this.#disabled = disabled;
  }

  get disabled(): string | undefined {
    return this.#disabled;
  }

  /**
   * `bytes` is the length of the parsed body, or of one record of it: then the records share an allowance.
   * @throws ApiError schema_mismatch with the failing paths, or only the first if finding all would take long;
   * unavailable if the schema is disabled, or its fleet compiles too many at once or has taken too much time.
   */
  check(value: JsonObject, bytes: number, allowance?: CheckAllowance): void {
    const { settings, checks } = this.#watch;
    const compiled = this.#compiled ?? this.#compile();
    checks?.admitCheck(this.#cost, compiled.exhaustiveSteps, bytes);
    const startedAtMs = performance.now();
    const mismatch = this.#mismatchOf(compiled, value, bytes, allowance);
    const milliseconds = performance.now() - startedAtMs;
    if (milliseconds > settings.current.schemaCheckMillisecondsMax)
      this.#confirmSlow(compiled, value, bytes, milliseconds);
    checks?.spendCheck(this.#cost, performance.now() - startedAtMs, bytes, allowance?.usualMs);
    if (mismatch === undefined) return;
    throw new ApiError('schema_mismatch', { errors: mismatch.errors, refusedValue: mismatch.value });
  }

  /** @throws ApiError unavailable if it is disabled, or becomes so, or must wait. */
  #compile(): Compiled {
    if (this.#disabled !== undefined) return this.#refuse();
    const { settings, compilations, checks } = this.#watch;
    const startedAtMs = performance.now();
    try {
      const schema = JSON.parse(this.text) as JsonObject;
      this.#states ??= Math.ceil(this.text.length / bytesPerState) + patternsSize(schema).states;
      compilations?.take(this.#states, () => {
        this.#compiled = undefined;
      });
      const plain = plainSchema(schema);
      const patterns = new SchemaPatterns(schema, settings.current.schemaPatternStatesMax);
      let steps: number | undefined;
      this.#compiled = {
        validator: new Validator(plain, patterns),
        exhaustiveSteps: () => {
          steps ??= exhaustiveSteps(plain, patterns);
          return steps;
        },
      };
      return this.#compiled;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // Devices read this too; the reason is shown when it is put again.
      this.#disable('it cannot be compiled');
      return this.#refuse();
    } finally {
      checks?.spendCompilation(performance.now() - startedAtMs);
    }
  }

  #refuse(): never {
    const msg = `This schema is disabled until it is put again: ${this.#disabled}.`;
    throw unavailable(msg, disabledRetrySeconds);
  }

  /**
   * Confirms a slow check by repeating it: the thread may have been suspended in the middle, by a sleeping machine,
   * say.
   */
  #confirmSlow(compiled: Compiled, value: JsonObject, bytes: number, milliseconds: number): void {
    const { schemaCheckMillisecondsMax: limit } = this.#watch.settings.current;
    let least = milliseconds;
    if (milliseconds <= limit * repeatedCheckFactor) {
      const startedAtMs = performance.now();
      this.#mismatchOf(compiled, value, bytes);
      least = Math.min(milliseconds, performance.now() - startedAtMs);
    }
    if (least <= limit) return;
    this.#compiled = undefined;
    this.#disable(
      `a body of ${bytes} bytes took ${Math.round(least)} ms to check (schemaCheckMillisecondsMax)`,
    );
  }

  #disable(reason: string): void {
    this.#disabled = reason;
    this.#watch.onDisabled(reason);
  }

  #mismatchOf(
    { validator, exhaustiveSteps: steps }: Compiled,
    value: JsonObject,
    bytes: number,
    allowance?: CheckAllowance,
  ): Mismatch | undefined {
    const operationsMax = this.#watch.settings.current.schemaStepsMax * operationsPerStep;
    try {
      return validator.errorsOf(value, operationsMax, () =>
        (allowance ?? new CheckAllowance()).takeReport(steps() * bytes) ? 'all' : 'first',
      );
    } catch (error) {
      if (error instanceof TooManyOperations)
        return { errors: [{ path: '', msg: 'takes too long to check (schemaStepsMax)' }] };
      if (error instanceof RangeError) return { errors: [{ path: '', msg: 'is nested too deeply' }] };
      throw error;
    }
  }
}
