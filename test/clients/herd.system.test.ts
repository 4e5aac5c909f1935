/** Backoff of many clients that lose one server at the same moment. */

import { expect, it } from 'vitest';
import { DeviceClient } from '../../src/device/client/device-client.ts';
import { createFleet } from '../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../harness/server/server.ts';
import { openStreams, pause, until } from '../harness/server/vitals.ts';
import { HostileRelay } from './hostile-relay.ts';

/** So few that connecting them all takes well under a second, and what lies between their moments is what they waited. */
const devicesCount = 200;
/** The server draws each device's pause from some seconds (D20); at once it would be nothing. */
const spreadMsMin = 2_000;
const config = { anonymousRequestsPerSecondMax: 0, unauthorizedMax: 0 };

/** The time that eight tenths of these moments lie in: a moment's halt of this process moves it little. */
function spreadMs(momentsMs: readonly number[]): number {
  const at = (share: number): number => momentsMs[Math.floor(momentsMs.length * share)] ?? 0;
  return at(0.9) - at(0.1);
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
    expect(spreadMs(arrivals)).toBeGreaterThan(spreadMsMin);
  } finally {
    await Promise.all(clients.map((client) => client.close(0)));
    await server[Symbol.asyncDispose]();
  }
});
