import { expect, it } from 'vitest';
import { DeviceClient } from '../../src/device/client/device-client.ts';
import { createFleet } from '../harness/device.ts';
import { TestServer, temporaryFolder } from '../harness/server.ts';
import { openStreams, pause, until } from '../harness/vitals.ts';
import { HostileRelay } from './hostile-relay.ts';

const devicesCount = 1_000;
/** At once it would be all of them, each with two connections. */
const connectionsPerSecondMax = 400;
const config = { anonymousRequestsPerSecondMax: 0, unauthorizedMax: 0 };

/** The most of these moments within any one second. */
function mostInASecond(momentsMs: readonly number[]): number {
  let [most, first] = [0, 0];
  for (const [index, moment] of momentsMs.entries()) {
    while ((momentsMs[first] ?? moment) <= moment - 1_000) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

it('devices that have lost the same server do not come back at the same moment', {
  timeout: 300_000,
}, async () => {
  const data = temporaryFolder();
  let server = await TestServer.start(config, data);
  await using relay = await HostileRelay.open(server.port);
  const fleet = await createFleet(server);
  const clients: DeviceClient[] = [];
  try {
    for (let n = 0; n < devicesCount; n += 1) {
      const { fleetId, deviceId, secret } = await fleet.createDevice();
      const url = `https://127.0.0.1:${relay.port}`;
      const client = new DeviceClient({
        url,
        fleet: fleetId,
        id: deviceId,
        secret,
        ca: server.report.cert_file,
      });
      client.onMail(() => {});
      clients.push(client);
    }
    const areBack = async (): Promise<boolean> => {
      await pause(500);
      return (await openStreams(server)) === devicesCount;
    };
    await until(areBack, 120_000);
    const lostMs = performance.now();
    await server.kill();
    server = await TestServer.start(config, data);
    relay.targetPort = server.port;
    await until(areBack, 120_000);
    const arrivals = relay.arrivalsMs.filter((moment) => moment >= lostMs);
    expect(arrivals.length).toBeGreaterThanOrEqual(devicesCount);
    expect(mostInASecond(arrivals)).toBeLessThan(connectionsPerSecondMax);
  } finally {
    await Promise.all(clients.map((client) => client.close(0)));
    await server[Symbol.asyncDispose]();
  }
});
