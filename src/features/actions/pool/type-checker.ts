import { Worker } from 'node:worker_threads';
import { Mutex } from '../../../core/async.ts';
import { ApiError } from '../../../core/errors.ts';
import type { SchemaText } from '../../../declarations/fleet.ts';
import type { ActionTrigger } from '../declaration/action.ts';
import { sourceBytesMax } from '../declaration/action-draft.ts';
import { harmless } from '../sandbox/text.ts';
import { payloadType } from './payload-type.ts';
import { newHeartbeat, threadMillisecondsOf } from './run-heartbeat.ts';
import type { TypeCheckTask, TypeFault } from './type-check.ts';

/**
 * A small action takes a quarter of a second and 40 MB; types can be made that take minutes and gigabytes. The thread
 * is ended then, so that nothing but the check is lost.
 */
const cpuMsMax = 5_000;
/** Where the system does not report CPU time, and against a thread that never starts. */
const wallMsMax = 60_000;
const watchIntervalMs = 50;
const heapMegabytes = 256;

/** A source, and the schemas whose records it runs for; absent: of any payload. */
export interface CheckedCode {
  source: string;
  on?: readonly ActionTrigger[];
}

/** Checks the types of actions, one at a time, each in a thread of its own. */
export class TypeChecker {
  readonly #turns = new Mutex();
  readonly #running = new Set<Worker>();
  #isClosed = false;

  /**
   * The errors in a source, whose payloads have the types of its triggers' schemas.
   * @throws ApiError invalid_action if the check does not end in time or memory.
   */
  async check({ source, on }: CheckedCode, schemas: readonly SchemaText[]): Promise<TypeFault[]> {
    if (Buffer.byteLength(source) > sourceBytesMax) {
      throw new ApiError('invalid_action', {
        msg: `The source is larger than ${sourceBytesMax} bytes in UTF-8.`,
      });
    }
    const wanted = schemas
      .filter(({ kind, name }) => (on ?? []).some((one) => one.kind === kind && one.schema === name))
      .map(({ text }) => payloadType(JSON.parse(text)));
    const payload = wanted.length === 0 ? 'JsonObject' : wanted.map((type) => `(${type})`).join(' | ');
    return this.#turns.run(() => this.#check({ source, payload }));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#running].map((worker) => worker.terminate()));
  }

  async #check(task: Omit<TypeCheckTask, 'heartbeat'>): Promise<TypeFault[]> {
    if (this.#isClosed) throw new ApiError('unavailable', { msg: 'The server is stopping.' });
    const heartbeat = newHeartbeat();
    const workerData: TypeCheckTask = { ...task, heartbeat };
    const worker = new Worker(new URL('./type-check.js', import.meta.url), {
      workerData,
      env: {},
      execArgv: [],
      argv: [],
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
    });
    this.#running.add(worker);
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<TypeFault[]>((resolve, reject) => {
        const startMs = performance.now();
        timer = setInterval(() => {
          // CPU time: a thread that waits for a processor is not at fault.
          const isOver = (threadMillisecondsOf(heartbeat) ?? 0) > cpuMsMax;
          if (isOver || performance.now() - startMs > wallMsMax) reject(unfinished());
        }, watchIntervalMs);
        worker.once('message', (faults: TypeFault[]) => {
          resolve(faults.map((fault) => ({ ...fault, msg: harmless(fault.msg, fault.msg.length) })));
        });
        // Out of memory, or nested too deeply for the compiler.
        worker.once('error', () => reject(unfinished()));
        worker.once('exit', () => reject(unfinished()));
      });
    } finally {
      clearInterval(timer);
      await worker.terminate();
      this.#running.delete(worker);
    }
  }
}

/** @throws ApiError invalid_action, with each error under its line and column. */
export function refuseFaults(faults: readonly TypeFault[]): void {
  if (faults.length === 0) return;
  throw new ApiError('invalid_action', {
    msg: 'The action has type errors. Mend them, or force the deployment.',
    errors: faults.map(({ line, column, msg }) => ({ path: `${line}:${column}`, msg })),
  });
}

function unfinished(): ApiError {
  const limits = `${cpuMsMax / 1_000} seconds and ${heapMegabytes} MB`;
  return new ApiError('invalid_action', {
    msg: `The types of this action cannot be checked within ${limits}: simplify them, or force the deployment.`,
  });
}
