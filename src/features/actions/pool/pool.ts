import type { MessagePort } from 'node:worker_threads';
import type { Piscina } from 'piscina';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import type { HostAnswer, HostCall, RunError, RunLimits, RunReport, RunRequest } from '../sandbox/run.ts';
import { harmless } from '../sandbox/text.ts';
import { newHeartbeat } from './run-heartbeat.ts';
import type { AnswerMessage, LoadTask, RunTask, ThreadData } from './task.ts';
import { RunWatch } from './watch.ts';

/**
 * Heap of a thread, without the memory of its engines. Far more than what a run can have it hold: beyond it, one large
 * string would end the server.
 */
const threadHeapMegabytes = 512;

/** Lowers the scheduling priority below that of the server's other threads. */
const niceIncrement = 10;

export interface ActionPoolOptions {
  config: { actionThreads: number; actionWarmMemoryBytesMax: number };
  log: Log;
  /** Script of a thread; there is none when running from the sources. */
  taskFile?: URL;
}

/** The threads that run actions. A misbehaving action ends its run or, at worst, its thread: never more. */
export class ActionPool {
  readonly #options: ActionPoolOptions;
  readonly #watch = new RunWatch();
  readonly #underWay = new Set<AbortController>();
  #pool: Promise<Piscina> | undefined;
  #closed = false;

  constructor(options: ActionPoolOptions) {
    this.#options = options;
  }

  /** Never rejects: a failure is part of the report. */
  async run(request: RunRequest, answer: HostAnswer): Promise<RunReport> {
    const startedAt = performance.now();
    const { port1, port2 } = new MessageChannel();
    let hasFailed = false;
    port1.on('message', (data: { number: number; call: HostCall }) => {
      answerTo(data.call, answer, (error) => {
        // Logged once per run, which may make thousands of calls.
        if (!hasFailed)
          logFailure(this.#options.log, error, 'host call of an action failed', { action: request.name });
        hasFailed = true;
      }).then((answered) => port1.postMessage({ number: data.number, ...answered } satisfies AnswerMessage));
    });
    const heartbeat = newHeartbeat();
    const task: RunTask = { request, port: port2, heartbeat };
    const report = await this.#perform<RunReport>('run', task, request.limits, [port2]);
    port1.close();
    if ('code' in report) {
      const wallMilliseconds = performance.now() - startedAt;
      return { error: report, sends: [], writes: [], log: [], cpuMilliseconds: 0, wallMilliseconds };
    }
    return report;
  }

  /** Loads JavaScript in a sandbox, up to its exports. Returns why it cannot be run. */
  load(code: Pick<LoadTask, 'code' | 'name'>, limits: RunLimits): Promise<RunError | undefined> {
    return this.#perform('load', { ...code, limits, heartbeat: newHeartbeat() }, limits, []);
  }

  /** Aborts what is under way: such runs are reported as `thread_lost`. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const abort of this.#underWay) abort.abort(closing);
    await (await this.#pool?.catch(() => undefined))?.destroy();
  }

  async #perform<T>(
    name: keyof typeof import('./task.ts'),
    task: RunTask | LoadTask,
    limits: RunLimits,
    transferList: MessagePort[],
  ): Promise<T | RunError> {
    if (this.#closed) return closing;
    const abort = new AbortController();
    this.#underWay.add(abort);
    const unwatch = this.#watch.add(task.heartbeat, limits, (error) => abort.abort(error));
    try {
      return (await (await this.#started()).run(task, { name, signal: abort.signal, transferList })) as T;
    } catch (error) {
      if (abort.signal.aborted) return abort.signal.reason as RunError;
      return { code: 'thread_lost', msg: `Its thread ended: ${harmless(String(error), 500)}` };
    } finally {
      unwatch();
      this.#underWay.delete(abort);
    }
  }

  #started(): Promise<Piscina> {
    this.#pool ??= this.#start().catch((error: unknown) => {
      // A failure is of this start alone: the next run tries again.
      this.#pool = undefined;
      throw error;
    });
    return this.#pool;
  }

  async #start(): Promise<Piscina> {
    // Loaded with the first action: they take some 10 MB, which a server without one can spare.
    const [{ Piscina }, { compileEngine, threadStackMegabytes }] = await Promise.all([
      import('piscina'),
      import('../sandbox/engine.ts'),
    ]);
    const { config, taskFile = new URL('./task.js', import.meta.url) } = this.#options;
    const { actionThreads, actionWarmMemoryBytesMax } = config;
    const workerData: ThreadData = {
      engine: await compileEngine(),
      warmMemoryBytesMax: actionWarmMemoryBytesMax,
    };
    const pool = new Piscina({
      filename: taskFile.href,
      minThreads: 0,
      maxThreads: actionThreads,
      idleTimeout: Number.POSITIVE_INFINITY,
      // Threads of actions get nothing of the server's environment and options.
      env: {},
      execArgv: [],
      argv: [],
      workerData,
      // Devices come first with too few cores for all. On Linux this applies to the thread alone.
      niceIncrement,
      resourceLimits: { maxOldGenerationSizeMb: threadHeapMegabytes, stackSizeMb: threadStackMegabytes },
    });
    // A thread that fails between tasks is replaced; without a listener this event would end the server.
    pool.on('error', () => {});
    return pool;
  }
}

const closing: RunError = { code: 'thread_lost', msg: 'The server stopped while the action ran.' };

async function answerTo(
  call: HostCall,
  answer: HostAnswer,
  onFailure: (error: unknown) => void,
): Promise<{ answer: string } | { error: string }> {
  try {
    return { answer: await answer(call) };
  } catch (error) {
    onFailure(error);
    return { error: 'The server could not answer.' };
  }
}
