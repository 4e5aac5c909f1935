import { ApiError, unavailable } from '../../../core/errors.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { SchemaText } from '../../../declarations/fleet.ts';
import { type Asker, ThreadSchedule } from '../queue/schedule.ts';
import { harmless } from '../sandbox/text.ts';
import { type CheckedCode, schemasOf } from './checked-code.ts';
import {
  CompilerChild,
  type CompilerLoss,
  type CompilerLossReason,
  compilerLimits,
  noLosses,
  type TaskAnswer,
} from './compiler-child.ts';
import type { CompilerTask } from './compiler-process.ts';
import type { TypeFault } from './type-check.ts';

/** Whose source it is, for the turns and the log. */
export interface CompilerRequest {
  fleetId: string;
  /** Name of the action, if it is known. */
  name: string | undefined;
  asker: Asker;
  /** Older requests of this asker for this action whose place it takes while they wait. */
  replaces?: 'checks' | 'deployments';
}

export interface CompilerOptions {
  log: Log;
  /** Script of the process; there is none when running from the sources. */
  processFile?: URL;
}

/** Then the process ends: it holds 130 MB, and is back within seconds. */
const idleMilliseconds = 600_000;
/** Memory between two tasks beyond which the process is replaced. */
const idleBytesMax = 268_435_456;

/**
 * Compiles and type-checks TypeScript, one source at a time, in a process that is started at the first and kept. A source
 * that takes too much ends that process, and costs nothing but its own task.
 */
export class Compiler {
  /** Processes lost to a source, by reason. */
  readonly losses: Record<CompilerLossReason, number> = { ...noLosses };
  readonly #options: CompilerOptions;
  readonly #turns: ThreadSchedule = new ThreadSchedule(1, () => this.#turns.next([]));
  #child: CompilerChild | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: CompilerOptions) {
    this.#options = options;
  }

  /** JavaScript of a source. @throws ApiError invalid_action, unavailable, replaced. */
  async translate(request: CompilerRequest & { name: string }, source: string): Promise<string> {
    const answer = await this.#run(request, { type: 'translate', source, name: request.name });
    if ('code' in answer) return answer.code;
    throw new ApiError('invalid_action', {
      msg: refusalIn(answer, 'This action cannot be compiled', 'Simplify it.'),
    });
  }

  /**
   * The errors in a source, whose payloads have the types of its triggers' schemas.
   * @throws ApiError invalid_action if it cannot be checked within the limits, unavailable, replaced.
   */
  async check(
    request: CompilerRequest,
    code: CheckedCode,
    schemas: readonly SchemaText[],
  ): Promise<readonly TypeFault[]> {
    const { source } = code;
    const answer = await this.#run(request, { type: 'check', source, schemas: schemasOf(code, schemas) });
    if ('faults' in answer) return answer.faults;
    const advice = 'Simplify them, or force the deployment.';
    throw new ApiError('invalid_action', {
      msg: refusalIn(answer, 'The types of this action cannot be checked', advice),
    });
  }

  /** Ends the process; what is under way or comes later is refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idleTimer);
    this.#turns.close();
    await this.#child?.end();
  }

  #run(request: CompilerRequest, task: CompilerTask): Promise<TaskAnswer | CompilerLoss> {
    const { name, replaces } = request;
    const subject = name && replaces && `${replaces} ${name}`;
    return this.#turns.take(request.fleetId, request.asker, () => this.#perform(request, task), subject);
  }

  async #perform(request: CompilerRequest, task: CompilerTask): Promise<TaskAnswer | CompilerLoss> {
    if (this.#isClosed) throw stopping();
    clearTimeout(this.#idleTimer);
    const { processFile = new URL('./compiler-process.js', import.meta.url) } = this.#options;
    const child =
      this.#child === undefined || this.#child.isLost ? new CompilerChild(processFile) : this.#child;
    this.#child = child;
    const answer = await child.perform(task);
    if (this.#isClosed) throw stopping();
    if ('loss' in answer) {
      this.#child = undefined;
      this.#report(request, answer);
      if (answer.loss === 'ended' || answer.loss === 'wall') {
        throw unavailable('The process of the TypeScript compiler has ended. Retry later.');
      }
    } else if (child.residentBytes > idleBytesMax) await this.#end(child);
    else this.#idleTimer = setTimeout(() => void this.#end(child), idleMilliseconds).unref();
    return answer;
  }

  async #end(child: CompilerChild): Promise<void> {
    if (this.#child === child) this.#child = undefined;
    await child.end();
  }

  /** Says whose source it was: a check is in no audit log, as it changes nothing. */
  #report({ fleetId, name, asker }: CompilerRequest, { loss, cpuMilliseconds }: CompilerLoss): void {
    this.losses[loss] += 1;
    this.#options.log.warn(
      {
        fleet: fleetId,
        // Names are what somebody has chosen.
        action: name === undefined ? null : harmless(name, 255),
        token: asker.token,
        tokenName: harmless(asker.name, 64),
        reason: loss,
        cpuMilliseconds: Math.round(cpuMilliseconds),
        losses: this.losses[loss],
      },
      'TypeScript compiler ended by a source; starting another when it is needed',
    );
  }
}

const reasons: Readonly<Record<CompilerLossReason, string>> = {
  memory: `more than ${compilerLimits.heapMegabytes} MB (memory_exceeded)`,
  cpu: `more than ${compilerLimits.cpuMilliseconds / 1_000} seconds of CPU time (cpu_time_exceeded)`,
  wall: 'too long (wall_time_exceeded)',
  depth: 'a deeper stack than there is, as it is nested too deeply (stack_exceeded)',
  ended: 'a process that ended',
};

function refusalIn(answer: TaskAnswer | CompilerLoss, what: string, advice: string): string {
  if ('loss' in answer) return `${what}: that takes ${reasons[answer.loss]}. ${advice}`;
  return 'refusal' in answer ? answer.refusal : what;
}

function stopping(): ApiError {
  return unavailable('The server is stopping.');
}
