import type { Benchmark, Size } from '../benchmark.ts';
import { interleave, type Lane, warmUp } from '../interleave.ts';
import { connectAgainAndAgain } from '../load/handshakes.ts';
import { wakeText } from '../load/wake.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { loadMail } from '../servers/mail-loader.ts';
import { nginx } from '../servers/nginx.ts';
import type { RunningServer } from '../servers/subject.ts';
import { payload } from './device-requests.ts';

const devices = 100;
/** More than are fetched. */
const mailsPerDevice: Readonly<Record<Size, number>> = { short: 100, usual: 3_000, full: 5_000 };
const connections = 64;
const shards = 1;

const handshakes = (['TLSv1.3', 'TLSv1.2'] as const).flatMap((version) =>
  [false, true].map((resumed) => ({ version, resumed })),
);

export const wake: Benchmark = {
  name: 'wake',
  about:
    'A device wakes: it connects, with a full handshake or resuming its session, sends in one sync a datapoint, the ' +
    'acknowledgement of a mail and the question for the next, is answered once all is on disk, and leaves. nginx ' +
    'answers a constant to the same bytes. Latency is from the start of the connection to the answer.',
  missing: nginx.missing,
  async run(options) {
    await using server = await startWithMail(options.size);
    await using floor = await nginx.start({ shards, devices: 1 });
    const requests = server.devices.map((device) => wakeText(device, payload));
    const lanes = handshakes.flatMap((handshake): Lane[] => {
      const laneOf = (subject: string, to: RunningServer, status: number): Lane => ({
        workload: `wake, ${handshake.resumed ? 'resumed' : 'full'} handshake, ${handshake.version}`,
        subject,
        conditions: { shards, connections, loop: 'closed' },
        measure: () =>
          connectAgainAndAgain(to, {
            ...handshake,
            requests,
            isWake: true,
            status,
            connections,
            seconds: options.seconds,
          }),
      });
      const constant = laneOf(nginx.name, floor, nginx.constantStatus ?? 201);
      const compareWith = { lane: constant, name: nginx.name };
      return [constant, { ...laneOf(fleetpost.name, server, 200), compareWith }];
    });
    await warmUp(lanes, options);
    // Both servers end with this function.
    return await interleave(lanes, options);
  },
};

async function startWithMail(size: Size): Promise<Fleetpost> {
  const server = await Fleetpost.start({ shards, devices });
  await server.end();
  await loadMail(server.data, shards, {
    devices: server.devices,
    mailsPerDevice: mailsPerDevice[size],
    payload: Buffer.from(payload),
    progress: () => {},
  });
  await server.begin();
  return server;
}
