import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { importDevices } from '../../harness/features/broadcast.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { engine, TestServer, temporaryFolder } from '../../harness/server/server.ts';

const kills = Number(process.env.FLEET_DELETION_KILLS ?? 4);
const devices = 3_000;
const noteMessages = [{ kind: 'message', schema: 'note' }];

it('killed again and again, a deletion of a fleet goes on at each start until all is gone', {
  timeout: 600_000,
}, async () => {
  const data = temporaryFolder();
  let server = await TestServer.start({}, data);
  try {
    const [fleet, other] = [await createFleet(server, { name: 'Large' }), await createFleet(server)];
    await importDevices(fleet, { count: devices });
    await importDevices(other, { count: 10 });
    for (let n = 0; n < 20; n += 1) {
      expect(
        (await fleet.putAction(`act-${n}`, 'export default () => {}', { on: noteMessages })).status,
      ).toBe(201);
      const consumer = await server.admin('PUT', `/fleets/${fleet.fleetId}/consumers/read-${n}`, {});
      expect(consumer.status).toBe(201);
    }
    const device = await fleet.createDevice();
    const path = `/fleets/${fleet.fleetId}`;
    expect((await server.admin('DELETE', `${path}?name=Large`)).status).toBe(202);
    for (let kill = 0; kill < kills; kill += 1) {
      // At another moment of the deletion each time.
      await new Promise((resolve) => setTimeout(resolve, 900 + 150 * kill));
      await server.kill();
      server = await TestServer.start({}, data);
      expect((await device.on(server).heartbeat()).json.detail).toBe('fleet_not_found');
    }
    await expect
      .poll(async () => (await server.admin('POST', '/fleets', { fleet_id: fleet.fleetId })).status, {
        // The id is free a minute after the fleet has gone, where the data is in databases.
        timeout: 400_000,
        interval: 500,
      })
      .toBe(201);
    const counts = await server.admin('GET', `${path}/counts`);
    expect(counts.body).toMatchObject({ devices: 0 });
    for (const rest of ['devices', 'actions', 'consumers', 'schemas']) {
      expect((await server.admin<{ items: unknown[] }>('GET', `${path}/${rest}`)).body.items).toEqual([]);
    }
    const left = await server.admin('GET', `/fleets/${other.fleetId}/counts`);
    expect(left.body).toMatchObject({ devices: 10 });
    expect(await server.stop()).toBe(0);
    if (engine === 'lmdb') {
      expect((await fleetpost(['verify', '--data', data])).stdout).toContain('OK, no problems found.');
    }
  } finally {
    if (server.isRunning) await server.stop();
    rmSync(data, { recursive: true, force: true });
  }
});
