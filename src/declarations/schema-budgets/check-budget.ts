import type { Settings } from '../../core/config/settings.ts';
import { type ApiError, unavailable } from '../../core/errors.ts';
import { RateLimiter } from '../../core/limits/rate-limiter.ts';

/** Time that a compilation may take without being counted. */
const usualCompilationMs = 5;
/** States that are compiled within it. */
const usualStates = 250;
/**
 * Time that a check may take without being counted, of any body and for each of its bytes: about what it takes to
 * receive and parse one. Most take a tenth of it. A device may send a thousand bodies a second, so more would add up.
 */
const usualCheckMs = 0.1;
const usualMsPerByte = 0.000_02;
/** The same for one of many records that come as one body: what most checks take. */
const usualRecordCheckMs = 0.01;
/** Budget for reporting every failing path of a body instead of the first: about a millisecond. */
const reportStepsMax = 250_000;
/** Steps, times the bytes of the body, from which on a check whose time is not known yet may take long. */
const unknownSteps = 250_000;
/**
 * Time that parsing may take for each byte without being counted: usual bodies take a quarter. One of whose objects each
 * has a member of another name takes ten times as much, since the engine makes a layout for each.
 */
const usualParseMsPerByte = 0.000_03;
/** What is counted of one at most, as a multiple of that: one that seems to take longer was interrupted. */
const parseFactorMax = 4;
/** Bodies of up to so many bytes are parsed whatever was taken, and not timed: none takes longer than to be received. */
const smallBodyBytes = 1_024;
/** How long time that was not taken is saved up. */
const burstSeconds = 100;

/** Weight of the latest check in the mean of a schema's, and the most that one counts for in it. */
const latestWeight = 1 / 16;
const outlierMs = 1;
/** Mean time beyond the usual from which on a schema's checks count as costly. */
const costlyMs = 0.1;

/** What the checks of one body may take: of its only record, or of each of many. */
export class CheckAllowance {
  readonly usualMs: number;
  #reportSteps = reportStepsMax;

  constructor(usualMs = usualCheckMs) {
    this.usualMs = usualMs;
  }

  /** An allowance that all records of a body share. */
  static ofRecords(): CheckAllowance {
    return new CheckAllowance(usualRecordCheckMs);
  }

  /** True if every failing path may be reported, which takes so many steps. */
  takeReport(steps: number): boolean {
    if (steps > this.#reportSteps) return false;
    this.#reportSteps -= steps;
    return true;
  }
}

/** What the checks of one schema took of late, beyond the usual: a mean, since any check may be interrupted for a while. */
export class CheckCost {
  #meanMs = 0;

  /** True if its next check will probably take long. */
  get isHigh(): boolean {
    return this.#meanMs > costlyMs;
  }

  /** Adds a check's time beyond the usual. */
  add(beyondMs: number): void {
    if (beyondMs > 0 || this.#meanMs > 0) {
      this.#meanMs += (Math.min(beyondMs, outlierMs) - this.#meanMs) * latestWeight;
    }
  }
}

/**
 * Limits the time of this thread that one fleet's schemas take, on which everybody else waits: one body may take a
 * second within the limits of its schema, and a device may send many. Only what could take long is ever refused.
 */
export class CheckBudget {
  readonly #settings: Settings<{ schemaCheckMillisecondsPerSecondMax: number }>;
  readonly #rate = new RateLimiter(burstSeconds);
  /** Of parsing alone: so that the body of no cheap schema is refused for what the checks of others took. */
  readonly #parseRate = new RateLimiter(burstSeconds);

  constructor(settings: Settings<{ schemaCheckMillisecondsPerSecondMax: number }>) {
    this.#settings = settings;
  }

  /**
   * `cost` is what the checks of its schema took of late.
   * @throws ApiError unavailable while more time was taken than there is, if this check could take long too.
   */
  admitCheck(cost: CheckCost, steps: () => number, bytes: number): void {
    this.#admit(() => cost.isHigh || steps() * bytes > unknownSteps);
  }

  /** The same for compiling a schema. */
  admitCompilation(states: number): void {
    this.#admit(() => states > usualStates);
  }

  /** Counts what a check took, and remembers it of its schema. */
  spendCheck(cost: CheckCost, milliseconds: number, bytes: number, usualMs = usualCheckMs): void {
    const beyond = Math.max(0, milliseconds - usualMs - bytes * usualMsPerByte);
    cost.add(beyond);
    this.#spend(this.#rate, beyond);
  }

  /** Counts what a compilation took. */
  spendCompilation(milliseconds: number): void {
    this.#spend(this.#rate, Math.max(0, milliseconds - usualCompilationMs));
  }

  /**
   * Parses a body of the fleet, however that ends. A small one always may be, and costs nothing more.
   * @throws ApiError unavailable, before it is parsed, while parsing took more time than there is.
   */
  parse<T>(bytes: Buffer, parse: (bytes: Buffer) => T): T {
    if (bytes.length <= smallBodyBytes) return parse(bytes);
    const waitSeconds = this.#secondsOwed(this.#parseRate);
    if (waitSeconds > 0) throw tooLong(waitSeconds);
    const startedAtMs = performance.now();
    try {
      return parse(bytes);
    } finally {
      // Less than usual makes up for more: on a busy machine a few are interrupted, however short they are.
      const usualMs = bytes.length * usualParseMsPerByte;
      this.#spend(
        this.#parseRate,
        Math.min(performance.now() - startedAtMs, parseFactorMax * usualMs) - usualMs,
      );
    }
  }

  /** Seconds until the time that was taken is made up for; 0 if none is owed. */
  get waitSeconds(): number {
    return Math.max(this.#secondsOwed(this.#rate), this.#secondsOwed(this.#parseRate));
  }

  #secondsOwed(rate: RateLimiter): number {
    const { schemaCheckMillisecondsPerSecondMax: perSecondMax } = this.#settings.current;
    return perSecondMax > 0 ? rate.wait(perSecondMax, 0) : 0;
  }

  #spend(rate: RateLimiter, milliseconds: number): void {
    const { schemaCheckMillisecondsPerSecondMax: perSecondMax } = this.#settings.current;
    if (perSecondMax > 0) rate.spend(perSecondMax, milliseconds);
  }

  #admit(isCostly: () => boolean): void {
    const waitSeconds = this.#secondsOwed(this.#rate);
    if (waitSeconds > 0 && isCostly()) throw tooLong(waitSeconds);
  }
}

/**
 * Parses a body within the budget of its fleet, if the thread knows that.
 * @throws ApiError unavailable, as `CheckBudget.parse`; what `parse` throws.
 */
export function parseWithin<T>(
  checks: CheckBudget | undefined,
  bytes: Buffer,
  parse: (bytes: Buffer) => T,
): T {
  return checks === undefined ? parse(bytes) : checks.parse(bytes, parse);
}

function tooLong(waitSeconds: number): ApiError {
  const msg =
    'The bodies of this fleet take too long to check (schemaCheckMillisecondsPerSecondMax). Retry later.';
  return unavailable(msg, Math.ceil(waitSeconds));
}
