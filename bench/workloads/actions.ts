import { availableParallelism } from 'node:os';
import { pathTo } from '../../src/contract/routes/path.ts';
import type { Benchmark, BenchmarkOptions } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { announced, percentilesOf } from '../load/announcements.ts';
import { MessageFlow } from '../load/message-flow.ts';
import { openLoop } from '../load/open-loop.ts';
import { type Requests, requestText, writeRequests } from '../load/requests.ts';
import { StreamHolders } from '../load/stream-holders.ts';
import type { Conditions, Result } from '../result.ts';
import { answering, BenchAction } from '../servers/actions.ts';
import { cpuMicroseconds } from '../servers/cpu-time.ts';
import { fleetId } from '../servers/devices.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { payloadSchema } from '../servers/payload-schema.ts';
import { ThreadClock, threadFigures } from '../servers/thread-times.ts';
import { message, payloadBytes } from './device-requests.ts';
import { manyActions } from './many-actions.ts';

const shards = availableParallelism();
const devices = 1_000;
const connections = 16;
/** Messages a second: every run is done well before the next. */
const ratePerSecond = 200;
/** Records in hand and in the log before the runs are counted, for each second of a round. */
const backlogPerSecond = 1_500;
const streams = 64;
const latencyRates = [10, 100];
/** Duration of messages before the rounds, for code to be compiled. */
const warmUpSeconds = 3;

export const actions: Benchmark = {
  name: 'actions',
  about:
    'Messages with actions beside them, at one constant rate: none on the server; one that listens to other messages; ' +
    'one that runs for each and does nothing; one that sends a mail for each. The workers answer the requests, and store ' +
    'the mails: their time is the ratio. Then how many messages a second become mails in mailboxes when there are always more, ' +
    'and how long after a message was due the event of its mail was read.',
  async run(options) {
    if (options.many) return manyActions(options);
    const servers: Fleetpost[] = [];
    try {
      for (const actionThreads of [2, 1]) {
        options.progress(`starting a server with ${actionThreads} action threads`);
        servers.push(await startServer(actionThreads));
      }
      const [two, one] = servers;
      if (two === undefined || one === undefined) return [];
      const requests = writeRequests(two.devices.map((device) => requestText(device, message.request)));
      const lanes = [...(await requestLanes(two, requests, options.seconds))];
      const sender = await BenchAction.put(two, { name: 'answer', source: answering });
      lanes.push(await capacityLane(two, 2, sender, options.seconds));
      const other = await BenchAction.put(one, { name: 'answer', source: answering });
      lanes.push(await capacityLane(one, 1, other, options.seconds));
      await warmUp(lanes, options);
      const results = await interleave(lanes, options);
      return [...results, ...(await eventLatencies(two, sender, options))];
    } finally {
      for (const server of servers) await server.stop();
    }
  },
};

async function startServer(actionThreads: number): Promise<Fleetpost> {
  const config = { actionThreads, actionRunsPerSecondMax: 1_000_000, mailboxMailsMax: 65_535 };
  const server = await Fleetpost.start({ shards, devices, config });
  server.threadClock = new ThreadClock(server.processIds()[0] ?? 0, shards);
  return server;
}

/** Lanes that measure the cost of a message, whatever listens to it. */
async function requestLanes(server: Fleetpost, requests: Requests, seconds: number): Promise<Lane[]> {
  const path = pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', {
    fleet_id: fleetId,
    kind: 'message',
    name: 'other',
  });
  await server.admin.request('PUT', path, { json: payloadSchema });
  const lane = (workload: string, action?: BenchAction): Lane => ({
    workload,
    subject: fleetpost.name,
    conditions: conditionsOf({ connections, ratePerSecond, loop: 'open' }),
    async measure() {
      await action?.enable();
      const load = { requests, statuses: [message.status], connections, ratePerSecond, seconds };
      const figures = await openLoop(server, load);
      await action?.untilDone();
      await action?.disable();
      return figures;
    },
  });
  const none = lane('message, no action');
  const compareWith: Lane['compareWith'] = {
    lane: none,
    name: 'without actions',
    figure: 'workersMicrosecondsPerOperation',
  };
  const idle = 'export default () => {};';
  const unheard = await BenchAction.put(server, { name: 'unheard', source: idle, schema: 'other' });
  const silent = await BenchAction.put(server, { name: 'silent', source: idle });
  const sending = await BenchAction.put(server, { name: 'sending', source: answering });
  return [
    none,
    { ...lane('message, an action listens to others', unheard), compareWith },
    { ...lane('message, an action runs', silent), compareWith },
    { ...lane('message, an action sends a mail', sending), compareWith },
  ];
}

/** Measures from when all messages of a backlog are stored until the last mail is in its mailbox. */
async function capacityLane(
  server: Fleetpost,
  actionThreads: number,
  action: BenchAction,
  seconds: number,
): Promise<Lane> {
  return {
    workload: 'message to mail, as fast as it goes',
    subject: fleetpost.name,
    conditions: conditionsOf({ actionThreads, loop: 'closed' }),
    async measure() {
      await using flow = new MessageFlow(server, server.devices);
      const mailsBefore = await mailsOf(server);
      await action.enable();
      const messages = backlogPerSecond * seconds;
      await flow.sendAll(messages);
      const waiting = await action.waiting();
      const startMs = performance.now();
      const cpuBefore = cpuMicroseconds(server.processIds());
      const threadsBefore = server.threadTimes();
      await action.untilDone();
      const elapsedMs = performance.now() - startMs;
      const cpu = cpuMicroseconds(server.processIds()) - cpuBefore;
      const threads = threadFigures(threadsBefore, server.threadTimes(), waiting);
      await action.disable();
      const mails = (await mailsOf(server)) - mailsBefore;
      if (mails !== messages) throw new Error(`${messages} messages became ${mails} mails`);
      return {
        operationsPerSecond: (waiting * 1_000) / elapsedMs,
        cpuMicrosecondsPerOperation: cpu / waiting,
        ...threads,
      };
    },
  };
}

/** Counts the mails in the mailboxes of all devices. */
async function mailsOf(server: Fleetpost): Promise<number> {
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId });
  const { items } = await server.admin.request('GET', path, { query: { limit: devices } });
  return items.reduce((sum, { mailbox_size }) => sum + mailbox_size, 0);
}

async function eventLatencies(
  server: Fleetpost,
  action: BenchAction,
  { rounds, seconds, progress }: BenchmarkOptions,
): Promise<Omit<Result, 'benchmark'>[]> {
  const listening = server.devices.slice(0, streams);
  using holders = await StreamHolders.open(
    server,
    listening.map((device) => requestText(device, { method: 'GET', path: '/v1/events' })),
  );
  await using flow = new MessageFlow(server, listening);
  await action.enable();
  const results: Omit<Result, 'benchmark'>[] = [];
  for (const rate of latencyRates) {
    progress(`from message to event, ${rate} messages a second`);
    await announced(holders, await flow.send(rate, warmUpSeconds));
    const latencies = await announced(holders, await flow.send(rate, rounds * seconds));
    results.push({
      workload: 'message to event',
      subject: fleetpost.name,
      conditions: conditionsOf({ streams, ratePerSecond: rate, loop: 'open' }),
      rounds: 1,
      figures: percentilesOf(latencies),
    });
  }
  await action.disable();
  return results;
}

function conditionsOf(own: Conditions): Conditions {
  return { shards, devices, payloadBytes, durability: fleetpost.durability, ...own };
}
