import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Benchmark, Size } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { requestText } from '../load/requests.ts';
import { visit } from '../load/visit.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { heartbeat } from './device-requests.ts';

const shardCounts: Readonly<Record<Size, readonly number[]>> = {
  short: [1, 2],
  usual: [1, 2, 8],
  full: [1, 2, 8],
};
const manyDevices: Readonly<Record<Size, number>> = { short: 20, usual: 1_000, full: 1_000 };
/** Connections that a device makes one after the other, each with the session of the one before. */
const visitsAlone = 40;
const visitsBesideOthers = 3;

/** Devices that connect, ask and leave at the same time, again and again. Settles with the share that was resumed. */
class Herd {
  readonly #secureContext;
  readonly #sessions: (Buffer | undefined)[];

  constructor(
    readonly server: Fleetpost,
    count: number,
  ) {
    this.#secureContext = createSecureContext({ ca: readFileSync(server.certFile) });
    this.#sessions = Array.from({ length: count });
  }

  /** @throws Error when one gets no answer. */
  async resumedPercent(visits: number): Promise<number> {
    const { hostname: host, port } = new URL(this.server.url);
    let offered = 0;
    let resumed = 0;
    const visitAgainAndAgain = async (index: number): Promise<void> => {
      const device = this.server.devices[index];
      if (device === undefined) throw new Error('the fleet is too small');
      const request = requestText(device, heartbeat.request);
      for (let number = 0; number < visits; number += 1) {
        const session = this.#sessions[index];
        const visited = await visit({
          host,
          port: Number(port),
          secureContext: this.#secureContext,
          session,
          request,
        });
        if (visited.answer === undefined) throw new Error('a connection failed');
        this.#sessions[index] = visited.session;
        if (session !== undefined) offered += 1;
        if (visited.isResumed) resumed += 1;
      }
    };
    await Promise.all(this.#sessions.map((_, index) => visitAgainAndAgain(index)));
    return (100 * resumed) / offered;
  }
}

function lanesOf(server: Fleetpost, shards: number, size: Size): Lane[] {
  const lane = (workload: string, devices: number, measure: () => Promise<number>): Lane => ({
    workload,
    subject: fleetpost.name,
    conditions: { shards, devices },
    measure: async () => ({ resumedPercent: await measure() }),
  });
  const many = manyDevices[size];
  return [
    lane('one device, alone', 1, () => new Herd(server, 1).resumedPercent(visitsAlone)),
    lane('many at once', many, () => new Herd(server, many).resumedPercent(visitsBesideOthers)),
    lane('first connection after a restart', 1, async () => {
      const herd = new Herd(server, 1);
      await herd.resumedPercent(visitsAlone);
      await server.end();
      await server.begin();
      return herd.resumedPercent(1);
    }),
  ];
}

export const resumption: Benchmark = {
  name: 'resumption',
  about:
    'How many connections of a device that offers the TLS session of the one before are resumed. A session is ' +
    'known to the worker that made it alone, and connections are dealt to the workers in turn.',
  async run(options) {
    const results = [];
    for (const shards of shardCounts[options.size]) {
      options.progress(`starting ${fleetpost.name} with ${shards} shards`);
      await using server = await Fleetpost.start({ shards, devices: manyDevices[options.size] });
      results.push(...(await interleave(lanesOf(server, shards, options.size), options)));
    }
    return results;
  },
};
