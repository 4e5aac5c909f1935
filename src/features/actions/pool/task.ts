import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { RunEffects } from '../sandbox/effects.ts';
import { useEngine } from '../sandbox/engine.ts';
import { HostCalls } from '../sandbox/host-call-port.ts';
import type { HostCall, RunError, RunLimits, RunReport, RunRequest } from '../sandbox/run.ts';
import { RunBudget } from '../sandbox/run-budget.ts';
import { type RunUnderWay, Sandbox } from '../sandbox/sandbox.ts';
import { WarmSandboxes } from '../sandbox/warm-sandboxes.ts';
import type { RunHeartbeat } from './run-heartbeat.ts';

/** Data that each thread is started with. */
export interface ThreadData {
  engine: object;
  warmMemoryBytesMax: number;
}

/** The pool's message to a thread for a run, and for a look at code. */
export interface RunTask {
  request: RunRequest;
  /** Carries host calls and their answers. */
  port: MessagePort;
  heartbeat: RunHeartbeat;
}

export interface LoadTask {
  code: string;
  /** Name of the action. */
  name: string;
  limits: RunLimits;
  heartbeat: RunHeartbeat;
}

export interface AnswerMessage {
  number: number;
  answer?: string;
  error?: string;
}

const { engine, warmMemoryBytesMax } = Piscina.workerData as ThreadData;
useEngine(engine);
const warm = new WarmSandboxes(warmMemoryBytesMax);

export async function run({ request, port, heartbeat }: RunTask): Promise<RunReport> {
  const { key, code, name, record, limits } = request;
  const warmKey = key && `${limits.memoryBytes} ${key}`;
  const underWay = newRun(limits, heartbeat, new HostCalls(hostCaller(port)));
  const { effects, budget } = underWay;
  let sandbox = warmKey === undefined ? undefined : warm.take(warmKey);
  let error = await sandbox?.run(record, underWay);
  // The leftovers of earlier runs in a warm sandbox may be why. No code of this run has run yet, so it can start over
  // in a fresh one.
  if (sandbox === undefined || error?.code === 'unreadable_record') {
    sandbox = await Sandbox.make(limits.memoryBytes, name);
    error = sandbox.load(code, underWay) ?? (await sandbox.run(record, underWay));
  }
  // A failed run may leave the sandbox in an inconsistent state.
  if (error === undefined && warmKey !== undefined) warm.keep(warmKey, sandbox);
  port.close();
  return {
    error,
    sends: error === undefined ? effects.sends : [],
    writes: error === undefined ? effects.writes : [],
    log: effects.lines,
    cpuMilliseconds: budget.cpuMilliseconds,
    wallMilliseconds: budget.wallMilliseconds,
  };
}

export async function load({ code, name, limits, heartbeat }: LoadTask): Promise<RunError | undefined> {
  const sandbox = await Sandbox.make(limits.memoryBytes, name);
  const nothing = new HostCalls(() => Promise.reject(new Error('There is no run.')));
  return sandbox.load(code, newRun(limits, heartbeat, nothing));
}

function newRun(limits: RunLimits, heartbeat: RunHeartbeat, hostCalls: HostCalls): RunUnderWay {
  return { effects: new RunEffects(limits), budget: new RunBudget(limits, heartbeat), hostCalls };
}

function hostCaller(port: MessagePort): (call: HostCall) => Promise<string> {
  const waiting = new Map<number, (message: AnswerMessage) => void>();
  let lastNumber = 0;
  port.on('message', (data: AnswerMessage) => {
    waiting.get(data.number)?.(data);
    waiting.delete(data.number);
  });
  return (call) =>
    new Promise((resolve, reject) => {
      lastNumber += 1;
      waiting.set(lastNumber, ({ answer, error }) =>
        answer === undefined ? reject(new Error(error)) : resolve(answer),
      );
      port.postMessage({ number: lastNumber, call });
    });
}
