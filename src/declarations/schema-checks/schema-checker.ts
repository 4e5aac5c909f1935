import { Worker } from 'node:worker_threads';
import type { Settings } from '../../core/config/settings.ts';
import { ApiError, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { SchemaLimits } from '../schemas/check-schema.ts';
import type { SchemaCost } from '../schemas/schema-cost.ts';
import type { SchemaCheckTask } from './schema-check-thread.ts';
import type { SchemaTrial, TriedSchema } from './schema-trial.ts';

/**
 * A schema within its limits takes some hundred milliseconds, and a sample up to a second; on a machine that others use
 * far longer, since the thread comes last. This is for what their limits do not know of.
 */
const checkMsMax = 60_000;
const retryAfterSeconds = 10;
/** Against growth. What one allocation may take is bounded by the limits of a schema alone. */
const heapMegabytes = 256;
/** The thread takes some 15 MB, for which it ends while nobody checks schemas. */
const idleMs = 60_000;

export interface SchemaCheckerSettings extends SchemaLimits {
  schemaChecksMax: number;
}

interface Check {
  fleetId: string;
  tried: TriedSchema;
  resolve(trial: SchemaTrial): void;
  reject(error: ApiError): void;
}

/**
 * Checks schemas, one at a time, in a thread of their own. Fleets take turns, and each has its share of what may wait.
 */
export class SchemaChecker {
  readonly #settings: Settings<SchemaCheckerSettings>;
  readonly #threadFile: URL;
  readonly #share = new FairShare(0);
  /** Waiting checks by fleet; the first fleet is the next. */
  readonly #waiting = new Map<string, Check[]>();
  #underWay: { check: Check; deadline: NodeJS.Timeout } | undefined;
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `threadFile`: from the sources there is none. */
  constructor(
    settings: Settings<SchemaCheckerSettings>,
    threadFile = new URL('./schema-check-thread.js', import.meta.url),
  ) {
    this.#settings = settings;
    this.#threadFile = threadFile;
  }

  /** Determines the cost of a schema. @throws ApiError invalid_schema, unavailable. */
  async check(fleetId: string, text: string): Promise<SchemaCost | undefined> {
    // Its kind makes a difference for a sample only.
    const { fault, cost } = await this.try(fleetId, { kind: 'message', text });
    if (fault !== undefined) throw new ApiError('invalid_schema', { msg: fault });
    return cost;
  }

  /** Checks a schema as before it is stored, and a sample against it. @throws ApiError unavailable. */
  async try(fleetId: string, tried: TriedSchema): Promise<SchemaTrial> {
    if (this.#isClosed) throw stopping();
    this.#share.max = this.#settings.current.schemaChecksMax;
    if (!this.#share.take(fleetId)) {
      throw unavailable('Too many schemas wait to be checked (schemaChecksMax). Retry later.');
    }
    try {
      return await new Promise<SchemaTrial>((resolve, reject) => {
        const queue = this.#waiting.get(fleetId) ?? [];
        queue.push({ fleetId, tried, resolve, reject });
        this.#waiting.set(fleetId, queue);
        this.#next();
      });
    } finally {
      this.#share.release(fleetId);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const open = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    for (const { reject } of open) reject(stopping());
    await this.#end(stopping());
  }

  #next(): void {
    const [first] = this.#waiting;
    if (this.#underWay !== undefined || first === undefined) return;
    const [fleetId, [check, ...rest]] = first;
    this.#waiting.delete(fleetId);
    // The fleet's other checks wait behind all other fleets'.
    if (rest.length > 0) this.#waiting.set(fleetId, rest);
    if (check === undefined) return;
    clearTimeout(this.#idle);
    const deadline = setTimeout(() => void this.#end(unfinished()), checkMsMax);
    this.#underWay = { check, deadline };
    this.#thread ??= this.#start();
    const { schemaStepsMax, schemaPatternStatesMax } = this.#settings.current;
    const task: SchemaCheckTask = {
      tried: check.tried,
      limits: { schemaStepsMax, schemaPatternStatesMax },
    };
    this.#thread.postMessage(task);
  }

  #start(): Worker {
    const thread = new Worker(this.#threadFile, {
      env: {},
      execArgv: [],
      argv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    });
    // It is ended, or its check is waited for.
    thread.unref();
    thread.on('message', (trial: SchemaTrial) => {
      // It answered as it was ended.
      if (this.#thread !== thread) return;
      this.#settle()?.resolve(trial);
      this.#idle = setTimeout(() => void this.#end(stopping()), idleMs).unref();
      this.#next();
    });
    // Out of memory. Without a listener this event would end the server; the other follows it.
    thread.on('error', () => {});
    thread.on('exit', () => {
      if (this.#thread === thread) void this.#end(unfinished());
    });
    return thread;
  }

  /** Ends the thread, and what it works on with this error; the next one has another. */
  async #end(error: ApiError): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    clearTimeout(this.#idle);
    this.#settle()?.reject(error);
    const ended = thread?.terminate();
    this.#next();
    await ended;
  }

  #settle(): Check | undefined {
    const underWay = this.#underWay;
    this.#underWay = undefined;
    clearTimeout(underWay?.deadline);
    return underWay?.check;
  }
}

function stopping(): ApiError {
  return unavailable('The server is stopping.');
}

function unfinished(): ApiError {
  const msg = `The schema was not checked within ${checkMsMax / 1_000} s. Simplify it, or retry.`;
  return unavailable(msg, retryAfterSeconds);
}
