import { availableParallelism } from 'node:os';
import { pathTo } from '../../src/contract/routes/path.ts';
import type { Benchmark } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { percentilesOf } from '../load/announcements.ts';
import type { Figures } from '../result.ts';
import { fleetId, largeFleet } from '../servers/devices.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { importNamed } from '../servers/named-devices.ts';

const shards = availableParallelism();
const smallFleet = 1_000;
const pageDevices = 100;
/** One device of so many has the tag. */
const taggedEvery = 10;
const tag = 'canary';
/** One for all pages: with another filter a cursor is refused. */
const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId });
const startedAt = new Date().toISOString();

/** Lists to ask for; `at` is drawn from all of the fleet. */
const lists = [
  { workload: 'any page of all', query: (at: Position) => ({ after: at.cursor }), isWalked: false },
  {
    workload: 'by name prefix',
    query: (at: Position) => ({ name_prefix: at.name.slice(0, -2) }),
    isWalked: false,
  },
  { workload: 'by tag', query: () => ({ tag: [tag] }), isWalked: true },
  { workload: 'by state', query: () => ({ state: 'offline' as const }), isWalked: true },
  { workload: 'by last sight', query: () => ({ seen_before: startedAt }), isWalked: true },
];

/** A device, and a page somewhere in the list of all. */
interface Position {
  name: string;
  cursor: string;
}

interface Listed {
  server: Fleetpost;
  names: readonly string[];
  cursors: readonly string[];
}

export const devicePages: Benchmark = {
  name: 'device-pages',
  about:
    `Pages of ${pageDevices} devices through the admin API, one request after the other, of a small and a large fleet. ` +
    'Lists by tag, state and last sight are gone through page by page. Ratios are of the p50.',
  async run(options) {
    await using small = await Fleetpost.start({ shards, devices: 0 });
    await using large = await Fleetpost.start({ shards, devices: 0 });
    const ofSmall = await fill(small, smallFleet, options.progress);
    const ofLarge = await fill(large, largeFleet[options.size], options.progress);
    const lanes = lists.flatMap((list) => {
      const own = lane(list, ofSmall, options.seconds);
      const name = `${smallFleet.toLocaleString('en-GB')} devices`;
      return [
        own,
        {
          ...lane(list, ofLarge, options.seconds),
          compareWith: { lane: own, name, figure: 'p50Milliseconds' as const },
        },
      ];
    });
    await warmUp(lanes, options);
    // Awaited here, or the servers would be gone.
    return await interleave(lanes, options);
  },
};

async function fill(server: Fleetpost, count: number, progress: (text: string) => void): Promise<Listed> {
  const tagsOf = (index: number): string[] => (index % taggedEvery === 0 ? [tag] : []);
  const devices = await importNamed(server, count, tagsOf, progress);
  return { server, names: devices.map(({ name }) => name), cursors: await cursorsOf(server) };
}

/** One for each 500 devices, the front aside. */
async function cursorsOf(server: Fleetpost): Promise<string[]> {
  const cursors: string[] = [];
  for (let next: string | null = ''; next !== null; ) {
    const query = { limit: 500, after: next };
    const page: { next: string | null } = await server.admin.request('GET', path, { query });
    next = page.next;
    if (next !== null) cursors.push(next);
  }
  return cursors;
}

function lane(list: (typeof lists)[number], listed: Listed, seconds: number): Lane {
  return {
    workload: list.workload,
    subject: fleetpost.name,
    conditions: { shards, devices: listed.names.length, connections: 1, loop: 'closed' },
    measure: () => pages(listed, list, seconds),
  };
}

async function pages(
  { server, names, cursors }: Listed,
  { query, isWalked }: (typeof lists)[number],
  seconds: number,
): Promise<Figures> {
  const latencies: number[] = [];
  const endMs = performance.now() + seconds * 1_000;
  let next: string | null = null;
  while (performance.now() < endMs) {
    const name = names[Math.floor(Math.random() * names.length)];
    if (name === undefined) throw new Error('the fleet has no devices');
    const cursor = cursors[Math.floor(Math.random() * cursors.length)] ?? '';
    const position = {
      limit: pageDevices,
      ...query({ name, cursor }),
      ...(next !== null && { after: next }),
    };
    const startMs = performance.now();
    const page: { next: string | null } = await server.admin.request('GET', path, { query: position });
    latencies.push((performance.now() - startMs) * 1_000);
    next = isWalked ? page.next : null;
  }
  return percentilesOf(latencies);
}
