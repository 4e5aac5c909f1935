import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { auditEntries } from '../../harness/features/audit.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
beforeAll(async () => {
  server = await TestServer.start({ unauthorizedMax: 3 });
  fleet = await createFleet(server);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const command = (...args: string[]) => fleetpostJson(server, args);

async function lockOut(device: TestDevice): Promise<void> {
  const wrong = { 'X-Device-Secret': `FOS-${'X'.repeat(32)}` };
  for (let i = 0; i < 3; i += 1) await device.request('POST', '/v1/heartbeat', undefined, wrong);
  expect((await device.heartbeat()).status).toBe(429);
}

it('D6: who is locked out is shown, and lifted at once', async () => {
  const [device, other] = [await fleet.createDevice(), await fleet.createDevice()];
  await lockOut(device);
  await lockOut(other);
  const of = ['--fleet', fleet.fleetId, '--device', device.deviceId];
  const shown = await command('device', 'show', ...of);
  expect(shown.lockouts).toEqual([{ address: '127.0.0.1', until: expect.any(String) }]);
  expect(Date.parse(shown.lockouts[0].until)).toBeGreaterThan(Date.now());
  const text = await fleetpost(['device', 'show', ...of, '--data', server.report.data]);
  expect(text.stdout).toContain(`127.0.0.1 until ${shown.lockouts[0].until.slice(0, 18)}`);
  expect(await command('lockout', 'list', ...of, '--address', '::ffff:127.0.0.1')).toMatchObject({
    items: [{ fleet_id: fleet.fleetId, device_id: device.deviceId, address: '127.0.0.1' }],
    next: null,
  });
  expect((await command('lockout', 'list', '--fleet', fleet.fleetId)).items).toHaveLength(2);
  expect((await command('lockout', 'list', '--address', '192.0.2.1')).items).toEqual([]);
  expect(await command('lockout', 'lift', ...of)).toEqual({ lifted: 1 });
  for (let i = 0; i < 8; i += 1) expect((await device.heartbeat()).status).toBe(201);
  expect((await command('device', 'show', ...of)).lockouts).toEqual([]);
  expect((await other.heartbeat()).status).toBe(429);
  const entries = await auditEntries(server);
  expect(
    entries.find(({ method, route }) => method === 'DELETE' && route.endsWith('/lockouts')),
  ).toMatchObject({
    status: 200,
    about: { fleet_id: fleet.fleetId, device_id: device.deviceId, lifted: 1 },
  });
  const aimless = await fleetpost(['lockout', 'lift', '--data', server.report.data]);
  expect(aimless.stderr).toContain('--all');
  expect(await command('lockout', 'lift', '--all')).toEqual({ lifted: 1 });
  expect((await other.heartbeat()).status).toBe(201);
});

it('what says nothing, too much or no address is refused', async () => {
  for (const query of ['', '?all=true&address=::1', '?all=yes', '?address=here', '?fleet_id=x']) {
    expect((await server.admin('DELETE', `/lockouts${query}`)).status, query).toBe(400);
  }
});
