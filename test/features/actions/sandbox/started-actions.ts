import { onTestFinished } from 'vitest';
import { createLog } from '../../../../src/core/telemetry/log.ts';
import { Compiler } from '../../../../src/features/actions/compiler/compiler.ts';
import { ActionPool } from '../../../../src/features/actions/pool/pool.ts';
import type {
  HostAnswer,
  RunLimits,
  RunRecord,
  RunReport,
} from '../../../../src/features/actions/sandbox/run.ts';

const processFile = new URL(
  '../../../../dist/features/actions/compiler/compiler-process.js',
  import.meta.url,
);
const taskFile = new URL('../../../../dist/features/actions/pool/task.js', import.meta.url);

export const limits: RunLimits = {
  cpuMilliseconds: 500,
  // Long enough that a busy machine does not end the runs that are well.
  wallMilliseconds: 30_000,
  memoryBytes: 16_777_216,
  mailsMax: 100,
  readsMax: 100,
  payloadBytesMax: 1_024,
  stateWritesMax: 10,
  stateValueBytesMax: 64,
};

export const record: RunRecord = {
  id: '0198c5a0-0000-7000-8000-000000000000',
  kind: 'message',
  device: 'SENSOR0001',
  name: 'opened',
  payload: '{"door":3,"__proto__":{"polluted":true}}',
  time: '2026-11-21T11:00:00.000Z',
};

export interface RunOptions {
  key?: string;
  name?: string;
  limits?: Partial<RunLimits>;
  record?: Partial<RunRecord>;
  answer?: HostAnswer;
}

export interface Actions {
  pool: ActionPool;
  /** The pool reads it as it starts. */
  config: { actionThreads: number };
  /** Runs a module; unless a key is given, in a realm that no run was in before. */
  run(code: string, options?: RunOptions): Promise<RunReport>;
  /** Runs the body of an action's function. */
  runBody(body: string, options?: RunOptions): Promise<RunReport>;
}

const nothing: HostAnswer = async () => 'null';
let keys = 0;

/** A pool of one thread, so that runs follow one another on it. */
export function startActions({
  threads = 1,
  warmBytesMax = 2 ** 26,
  log = createLog('silent'),
} = {}): Actions {
  const config = { actionThreads: threads, actionWarmMemoryBytesMax: warmBytesMax };
  const pool = new ActionPool({ config, log, taskFile });
  const run: Actions['run'] = (code, options = {}) => {
    keys += 1;
    const request = {
      key: options.key ?? `own ${keys}`,
      code,
      name: options.name ?? 'tried',
      record: { ...record, ...options.record },
      limits: { ...limits, ...options.limits },
    };
    return pool.run(request, options.answer ?? nothing);
  };
  return {
    pool,
    config,
    run,
    runBody: (body, options) => run(`export default async (record, fleet) => {\n${body}\n};`, options),
  };
}

/** A compiler with a process of its own, from its first task on. */
export function startCompiler(log = createLog('silent')): Compiler {
  return new Compiler({ log, processFile });
}

/** The same for one test. */
export function startActionsForTest(options?: Parameters<typeof startActions>[0]): Actions {
  const actions = startActions(options);
  onTestFinished(() => actions.pool.close());
  return actions;
}
