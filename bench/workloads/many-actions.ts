import { availableParallelism } from 'node:os';
import type { BenchmarkOptions } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { MessageFlow } from '../load/message-flow.ts';
import type { Result } from '../result.ts';
import { answering, BenchAction } from '../servers/actions.ts';
import { cpuMicroseconds } from '../servers/cpu-time.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { ThreadClock, threadFigures } from '../servers/thread-times.ts';
import { payloadBytes } from './device-requests.ts';

const shards = availableParallelism();
const devices = 100;
const actionThreads = 2;
const counts = [8, 16, 64];
/** Runs of all actions together. */
const runsPerSecond = 640;

/** Cost of a run when several actions take turns on a thread, each of which is to be ready there. */
export async function manyActions(options: BenchmarkOptions): Promise<Omit<Result, 'benchmark'>[]> {
  const config = { actionThreads, actionRunsPerSecondMax: 1_000_000, mailboxMailsMax: 65_535 };
  const server = await Fleetpost.start({ shards, devices, config });
  try {
    server.threadClock = new ThreadClock(server.processIds()[0] ?? 0, shards);
    const actions: BenchAction[] = [];
    for (let n = 0; n < Math.max(...counts); n += 1) {
      options.progress(`deploying action ${n + 1}`);
      actions.push(await BenchAction.put(server, { name: `of-many-${n}`, source: answering }));
    }
    const lanes: Lane[] = [];
    for (const count of counts)
      lanes.push(laneOf(server, actions.slice(0, count), options.seconds, lanes[0]));
    await warmUp(lanes, options);
    return await interleave(lanes, options);
  } finally {
    await server.stop();
  }
}

/** Each message is for all of them. */
function laneOf(server: Fleetpost, actions: readonly BenchAction[], seconds: number, few?: Lane): Lane {
  return {
    workload: `a run that sends a mail, ${actions.length} actions in use`,
    subject: fleetpost.name,
    conditions: {
      shards,
      devices,
      payloadBytes,
      durability: fleetpost.durability,
      actionThreads,
      loop: 'closed',
    },
    ...(few !== undefined && { compareWith: { lane: few, name: `${counts[0]} actions` } }),
    async measure() {
      await using flow = new MessageFlow(server, server.devices);
      for (const action of actions) await action.enable();
      const messages = Math.ceil((runsPerSecond * seconds) / actions.length);
      const runs = messages * actions.length;
      const startMs = performance.now();
      const cpuBefore = cpuMicroseconds(server.processIds());
      const threadsBefore = server.threadTimes();
      await flow.sendAll(messages);
      for (const action of actions) await action.untilDone();
      const elapsedMs = performance.now() - startMs;
      const cpu = cpuMicroseconds(server.processIds()) - cpuBefore;
      const threads = threadFigures(threadsBefore, server.threadTimes(), runs);
      for (const action of actions) await action.disable();
      return {
        operationsPerSecond: (runs * 1_000) / elapsedMs,
        cpuMicrosecondsPerOperation: cpu / runs,
        ...threads,
      };
    },
  };
}
