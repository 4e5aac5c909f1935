import '../../../core/private-process.ts';
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { payloadType } from './payload-type.ts';
import { javascriptOf, type Translation } from './translation.ts';
import { faultsIn, type TypeFault } from './type-check.ts';

/**
 * The TypeScript compiler, in a process of its own: types of a few lines can be made that want all time and memory, and
 * no limit of a thread stops one large string, which ends the whole process.
 */
export type CompilerTask =
  | { type: 'translate'; source: string; name: string }
  /** `schemas`: texts of those whose payloads the source is run for; none: any payload. */
  | { type: 'check'; source: string; schemas: readonly string[] };

/** `failed`: the source is nested too deeply. The compiler may be in any state then. */
export type CompilerMessage =
  | { type: 'ready' }
  | { type: 'failed' }
  | ({ type: 'translated' } & Translation)
  | { type: 'checked'; faults: TypeFault[] };

/** Devices come first. Less than the threads of actions give way, as somebody waits for the answer. */
const niceness = 5;

function answer(message: CompilerMessage): void {
  process.send?.(message);
}

function perform(task: CompilerTask): CompilerMessage {
  try {
    return task.type === 'check'
      ? { type: 'checked', faults: faultsIn(task.source, payloadType(task.schemas)) }
      : { type: 'translated', ...javascriptOf(task.source, task.name) };
  } catch {
    return { type: 'failed' };
  }
}

/**
 * Ends this process with the server, also amid a task, when this thread hears nothing of it: standard input is a pipe
 * of the server's, which nothing is ever written to.
 */
function endWithServer(): void {
  const wait = `require('node:fs').readSync(0, Buffer.alloc(1)); process.kill(process.pid, 'SIGKILL');`;
  new Worker(wait, {
    eval: true,
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
  });
}

/** Offers to be ended instead of the server when memory is short. */
function offerToEnd(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // Only Linux has it.
  }
}

endWithServer();
offerToEnd();
setPriority(niceness);
process.on('message', (task: CompilerTask) => answer(perform(task)));
// Parses the libraries, and has the engine compile what every task needs: no task is to pay for it.
perform({ type: 'check', source: 'export default () => {};', schemas: [] });
answer({ type: 'ready' });
