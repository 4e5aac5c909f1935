import { dirname } from 'node:path';
import type { Benchmark, BenchmarkOptions, Size } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { forgetFirst, percentilesOf, sendAndAwait } from '../load/announcements.ts';
import { onEveryNode } from '../load/every-node.ts';
import { closedLoopByNode } from '../load/open-loop.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import { StreamHolders } from '../load/stream-holders.ts';
import type { Conditions, Figures } from '../result.ts';
import { fastifyPostgres } from '../servers/fastify/postgres.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { FleetpostNodes, fleetpostOnPostgres } from '../servers/fleetpost-nodes.ts';
import { enqueuesAtOnce } from '../servers/mail-queue.ts';
import { missingPostgres } from '../servers/postgres.ts';
import { type Started, withServers } from '../servers/started.ts';
import type { MailServer, Subject } from '../servers/subject.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { connectionCounts } from './closed-loop.ts';
import { datapointWithKey, headNext, heartbeat, payloadBytes, type Workload } from './device-requests.ts';
import { acknowledge, enqueue, type MailWorkload, perMail, textsOf } from './mail.ts';
import { aim, conditionsOf, devices } from './target.ts';

const headAndAck: MailWorkload = {
  name: 'head and ack',
  about: 'HEAD of the next mail, then its acknowledgement.',
  steps: [() => headNext.request, acknowledge],
};
const mailConnections = 64;
/** A round is over when its mail is: all of its devices have the same number. */
const mailsPerSecond: Readonly<Record<Size, number>> = { short: devices, usual: 3_000, full: 3_000 };
/** Warm-up of the generator alone: the server is warm already. */
const mailWarmUpSeconds = 0.1;
/**
 * Requests to each node before anything is measured: until its code is compiled it needs twice the CPU, and of two
 * nodes each gets half of what one gets. In the short form nothing is warmed up.
 */
const warmUpRequests = 20_000;
const warmUpMails = 15 * devices;
/** Event streams, one a device, and mail for them: so little that nothing waits for anything else. */
const streams: Readonly<Record<Size, number>> = { short: 100, usual: 1_000, full: 1_000 };
const ratePerSecond = 100;
const streamWarmUpSeconds = 2;
/** Longest time for what ends by number: whatever lasts longer is an error. */
const secondsMax = 600;

type StartedHere = Started<MailServer>;
/** Measurements of one subject, in an order that is the same for all. */
type LanesOf = (started: StartedHere, options: BenchmarkOptions) => Promise<Lane[]>;

const wanted: readonly { subject: Subject<MailServer>; shards: number }[] = [
  { subject: fleetpost, shards: 1 },
  { subject: fleetpostOnPostgres(1), shards: 1 },
  { subject: fleetpostOnPostgres(2), shards: 1 },
  { subject: fastifyPostgres, shards: 1 },
];

const nodesOf = ({ server }: StartedHere): number => server.nodes?.length ?? 1;

const requestLanes =
  (workload: Workload): LanesOf =>
  async (started, options) => {
    const { server, subject } = started;
    const counts = connectionCounts(options);
    const target = await aim(workload, started);
    const load = { requests: target.requests, statuses: [target.status] };
    const nodes = nodesOf(started);
    const warmUp = {
      requestsCount: nodes * warmUpRequests,
      connections: Math.max(...counts),
      warmUpSeconds: 0,
    };
    if (options.size !== 'short') {
      await closedLoopByNode(server, { ...load, ...warmUp, seconds: secondsMax });
    }
    return counts.map((connections) => ({
      workload: workload.name,
      subject: subject.name,
      conditions: { ...conditionsOf(target), nodes, connections, loop: 'closed' },
      measure: () =>
        onEveryNode(server, () =>
          closedLoopByNode(server, { ...load, connections, seconds: options.seconds }),
        ),
    }));
  };

/** The mail of each round is queued in a lane of its own, just before. */
const mailLanes: LanesOf = async (started, { seconds, size }) => {
  const { server, subject, shards } = started;
  const nodes = nodesOf(started);
  const conditions: Conditions = {
    shards,
    nodes,
    devices,
    payloadBytes,
    durability: subject.durability,
    loop: 'closed',
  };
  // One mail of each device waits behind those of a round, so that a HEAD that is late finds one all the same.
  let { ids } = await enqueue(server, devices);
  const queue = async (count: number): Promise<Figures> => {
    const queued = await enqueue(server, count);
    ids.push(...queued.ids);
    return queued.figures;
  };
  const work = async (): Promise<Figures> => {
    const texts = textsOf(headAndAck, server, ids.slice(0, -devices));
    ids = ids.slice(-devices);
    const requests = writeRequests(texts);
    const load = {
      requests,
      requestsCount: texts.length,
      statuses: [headNext.status],
      connections: mailConnections,
      seconds: secondsMax,
      warmUpSeconds: mailWarmUpSeconds,
    };
    const figures = await onEveryNode(server, () => closedLoopByNode(server, load));
    removeFolder(dirname(requests.file));
    return perMail(figures, headAndAck);
  };
  if (size !== 'short') {
    await queue(nodes * warmUpMails);
    await work();
  }
  return [
    {
      workload: 'enqueue',
      subject: subject.name,
      conditions: { ...conditions, connections: enqueuesAtOnce },
      measure: () => queue(mailsPerSecond[size] * seconds),
    },
    {
      workload: headAndAck.name,
      subject: subject.name,
      conditions: { ...conditions, connections: mailConnections },
      measure: work,
    },
  ];
};

/** Streams are on the first node, and mail is queued on the last: what a notification between nodes takes is in it. */
const announcementLanes: LanesOf = async (started, { seconds, size }) => {
  const { server, subject, shards } = started;
  const sender = server instanceof FleetpostNodes ? server.nodes.at(-1) : server;
  if (!(sender instanceof Fleetpost)) return [];
  const listening = server.devices.slice(0, streams[size]);
  const requests = listening.map((device) => requestText(device, { method: 'GET', path: '/v1/events' }));
  const payload = Buffer.from('{"seconds":30}');
  const announce = async (duration: number): Promise<Figures> => {
    using holders = await StreamHolders.open(server, requests);
    await forgetFirst(holders);
    return percentilesOf(
      await sendAndAwait(sender, listening, holders, { ratePerSecond, payload, seconds: duration }),
    );
  };
  if (size !== 'short') await announce(streamWarmUpSeconds);
  return [
    {
      workload: 'mail, from queue to event',
      subject: subject.name,
      conditions: {
        shards,
        nodes: nodesOf(started),
        devices,
        streams: listening.length,
        ratePerSecond,
        durability: subject.durability,
        loop: 'open',
      },
      measure: () => announce(seconds),
    },
  ];
};

/** Those of all subjects side by side, lane by lane: one node beside LMDB, what else there is beside one node. */
async function lanesOf(
  started: readonly StartedHere[],
  lanesOfOne: LanesOf,
  figure: keyof Figures,
  options: BenchmarkOptions,
): Promise<Lane[]> {
  const lanes: Lane[][] = [];
  for (const subject of started) lanes.push(await lanesOfOne(subject, options));
  const [own = [], one = [], ...others] = lanes;
  return own.flatMap((lane, at) => {
    const oneNode = one[at];
    if (oneNode === undefined) return [lane];
    oneNode.compareWith = { lane, name: 'LMDB', figure };
    const rest = others.flatMap((each) => each[at] ?? []);
    for (const other of rest) other.compareWith = { lane: oneNode, name: '1 node', figure };
    return [lane, oneNode, ...rest];
  });
}

export const nodes: Benchmark = {
  name: 'nodes',
  about:
    'Whole servers on each engine: Fleetpost in its folder, one and two nodes of it on PostgreSQL, and Fastify on PostgreSQL. ' +
    'All is durable when it is answered; a node has one worker. Connections are dealt out evenly to the nodes, as a TCP load ' +
    'balancer does. CPU is that of the nodes and of all processes of the database, apart. Ratios are to Fleetpost in its ' +
    'folder for one node, to one node for the others. At last mail, queued on one node, for streams that the other holds: ' +
    'the time from when it was due until its event was read.',
  missing: missingPostgres,
  run: (options) =>
    withServers(wanted, devices, options, async (started) => {
      options.progress('warming up');
      const lanes: Lane[] = [];
      for (const lanesOfOne of [requestLanes(heartbeat), requestLanes(datapointWithKey), mailLanes]) {
        lanes.push(...(await lanesOf(started, lanesOfOne, 'cpuMicrosecondsPerOperation', options)));
      }
      lanes.push(...(await lanesOf(started, announcementLanes, 'p50Milliseconds', options)));
      return interleave(lanes, options);
    }),
};
