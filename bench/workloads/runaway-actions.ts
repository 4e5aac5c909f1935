import { availableParallelism } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import type { Benchmark } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { announced, percentilesOf } from '../load/announcements.ts';
import { MessageFlow } from '../load/message-flow.ts';
import { openLoop } from '../load/open-loop.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import { StreamHolders } from '../load/stream-holders.ts';
import type { Conditions, Figures } from '../result.ts';
import { answering, BenchAction } from '../servers/actions.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import type { Credentials } from '../servers/subject.ts';

import { datapoint, heartbeat } from './device-requests.ts';

const shards = availableParallelism();
const devices = 1_000;
const connections = 16;
const ratePerSecond = 200;
const messagesPerSecond = 20;
const streams = 20;

const otherFleet = 'RUNAWAY1';
const otherDevices = 100;
/** Messages of the other fleet: more than its runs can keep up with. */
const otherMessagesPerSecond = 20;
/** Time from its first message until there are runs all the time. */
const settleMs = 1_000;
/** Enough for any round. */
const otherSeconds = 100_000;

/** Faulty actions of the other fleet. */
const runaways: readonly { name: string; source: string }[] = [
  { name: 'an endless loop', source: 'export default () => { for (;;); };' },
  {
    name: 'a memory bomb',
    source: `export default () => { const all = []; for (;;) all.push(new Uint8Array(100_000)); };`,
  },
  {
    name: 'a mail bomb',
    source: `export default (record, fleet) => { for (;;) fleet.send(record.device, 'bomb', {}); };`,
  },
  {
    name: 'lookups without end',
    source: `export default async (record, fleet) => { for (;;) await fleet.device(record.device); };`,
  },
  {
    name: '1,000 mails a run',
    source: `export default (record, fleet) => { for (let n = 0; n < 1_000; n += 1) fleet.send(record.device, 'many', { n }); };`,
  },
];

interface Probe {
  workload: string;
  conditions: Conditions;
  measure(): Promise<Figures>;
}

export const runawayActions: Benchmark = {
  name: 'actions-runaway',
  about:
    'Heartbeats, datapoints and the way from a message to the event of the mail that an action sends for it, each at a constant rate, while ' +
    `the actions of another fleet, which sends ${otherMessagesPerSecond} messages a second, do what they should not. Ratios are of the p99.`,
  async run(options) {
    const config = { mailboxMailsMax: 65_535, actionAttemptsMax: 2, actionDeadLettersMax: 1_000_000 };
    await using server = await Fleetpost.start({ shards, devices, config });
    await server.addFleet(otherFleet);
    const others = await server.makeDevices(otherFleet, otherDevices);
    const listening = server.devices.slice(0, streams);
    using holders = await StreamHolders.open(
      server,
      listening.map((device) => requestText(device, { method: 'GET', path: '/v1/events' })),
    );
    await using flow = new MessageFlow(server, listening);
    const own = await BenchAction.put(server, { name: 'answer', source: answering });
    await own.enable();
    const lanes: Lane[] = [];
    for (const probe of probes(server, holders, flow, options.seconds)) {
      const alone = laneOf(probe, 'alone', probe.measure);
      const compareWith: Lane['compareWith'] = { lane: alone, name: 'alone', figure: 'p99Milliseconds' };
      lanes.push(alone);
      for (const [index, { name, source }] of runaways.entries()) {
        const bad = await BenchAction.put(server, { name: `bad${index}`, source, fleet: otherFleet });
        const beside = () => besideRunaway(server, others, bad, probe);
        lanes.push({ ...laneOf(probe, `beside ${name}`, beside), compareWith });
      }
    }
    await warmUp(
      lanes.filter(({ subject }) => subject === 'alone'),
      options,
    );
    // Awaited here, or the server would be gone.
    return await interleave(lanes, options);
  },
};

function laneOf({ workload, conditions }: Probe, subject: string, measure: Lane['measure']): Lane {
  return { workload, subject, conditions: { shards, devices, ...conditions, loop: 'open' }, measure };
}

function probes(server: Fleetpost, holders: StreamHolders, flow: MessageFlow, seconds: number): Probe[] {
  const ofRequests = [heartbeat, datapoint].map(({ name, request, status, isDurable }): Probe => {
    const requests = writeRequests(server.devices.map((device) => requestText(device, request)));
    const load = { requests, statuses: [status], connections, ratePerSecond, seconds };
    const durability = isDurable ? fleetpost.durability : 'none';
    return {
      workload: name,
      conditions: { connections, ratePerSecond, durability },
      async measure() {
        // The time that the runaway takes is none of the requests'.
        const { cpuMicrosecondsPerOperation: _, ...figures } = await openLoop(server, load);
        return figures;
      },
    };
  });
  const ofEvents: Probe = {
    workload: 'message to event',
    conditions: { streams, ratePerSecond: messagesPerSecond, durability: fleetpost.durability },
    measure: async () => percentilesOf(await announced(holders, await flow.send(messagesPerSecond, seconds))),
  };
  return [...ofRequests, ofEvents];
}

async function besideRunaway(
  server: Fleetpost,
  others: readonly Credentials[],
  bad: BenchAction,
  { measure }: Probe,
): Promise<Figures> {
  const end = new AbortController();
  await using flow = new MessageFlow(server, others);
  await bad.enable();
  const sending = flow.send(otherMessagesPerSecond, otherSeconds, end.signal);
  try {
    await wait(settleMs);
    return await measure();
  } finally {
    end.abort();
    await sending;
    await bad.disable();
  }
}
