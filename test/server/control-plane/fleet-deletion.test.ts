import { beforeAll, expect, it } from 'vitest';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 50 };
let server: TestServer;
beforeAll(async () => {
  server = await TestServer.shared();
});

const pathOf = ({ fleetId }: TestFleet, rest = ''): string => `/fleets/${fleetId}${rest}`;
const remove = (fleet: TestFleet, name: string) =>
  server.admin('DELETE', pathOf(fleet, `?${new URLSearchParams({ name })}`));
const isGone = async (fleet: TestFleet): Promise<void> => {
  await expect.poll(async () => (await server.admin('GET', pathOf(fleet))).status, patience).toBe(404);
};

/** Declares one of everything in a fleet, with some devices that have mail; returns one of these. */
async function fill(fleet: TestFleet): Promise<TestDevice> {
  await fleet.putSchema('message', 'opened', anyObject);
  const devices = await Promise.all(Array.from({ length: 70 }, () => fleet.createDevice({ tags: ['all'] })));
  const puts: [method: string, rest: string, body: object][] = [
    ['PUT', '/consumers/billing', {}],
    ['PUT', '/forwarders/hook', { type: 'webhook', url: 'https://192.0.2.1/' }],
    ['POST', '/claim-tokens', { devices_max: 5 }],
    ['POST', '/broadcasts', { name: 'note', payload: {}, to: { all: true } }],
    ['POST', '/broadcasts', { name: 'note', payload: {}, to: { tag: 'all' } }],
  ];
  for (const [method, rest, body] of puts) {
    const { status, body: answer } = await server.admin(method, pathOf(fleet, rest), body);
    expect([200, 201, 202], JSON.stringify(answer)).toContain(status);
  }
  expect((await fleet.putAction('relay', 'export default () => { throw new Error("no") }')).status).toBe(201);
  const [device] = devices;
  if (device === undefined) throw new Error('there is one');
  expect((await device.request('POST', '/v1/msg/opened', {})).status).toBe(201);
  return device;
}

it('a fleet is deleted with all that is in it, and its id is not given again while its records are there', async () => {
  const fleet = await createFleet(server, { name: 'To go' });
  const other = await createFleet(server, { name: 'To stay' });
  const neighbour = await other.createDevice();
  const device = await fill(fleet);
  const scopes = ['read'];
  const token = { name: 'reader', scopes, fleet_id: fleet.fleetId };
  const made = await server.admin<{ token_id: string }>('POST', '/tokens', token);

  for (const name of ['', 'to go', fleet.fleetId]) {
    expect(await remove(fleet, name)).toMatchObject({ status: 409, body: { error: 'not_confirmed' } });
  }
  expect((await server.admin('DELETE', pathOf(fleet))).status).toBe(400);
  expect((await device.heartbeat()).status).toBe(201);

  const deleted = await remove(fleet, 'To go');
  expect(deleted).toMatchObject({ status: 202, body: { deleting_since: expect.any(String) } });
  // Known to every thread by now, also of a device that it has just served.
  expect((await device.heartbeat()).json).toMatchObject({ detail: 'fleet_not_found' });
  const refused: [method: string, rest: string, body: object][] = [
    ['POST', '/devices', {}],
    ['PATCH', '', { name: 'again' }],
    ['PUT', '/schemas/message/late', anyObject],
    ['PUT', '/consumers/late', {}],
    ['PUT', '/forwarders/late', { type: 'webhook', url: 'https://192.0.2.1/' }],
    ['POST', '/claim-tokens', { devices_max: 5 }],
    ['POST', '/devices:import', { count: 5 }],
    ['POST', '/broadcasts', { name: 'note', payload: {}, to: { all: true } }],
  ];
  for (const [method, rest, body] of refused) {
    const answer = await server.admin(method, pathOf(fleet, rest), body);
    expect([rest, answer.status, answer.body.error]).toEqual([rest, 404, 'fleet_not_found']);
  }
  expect((await fleet.putAction('late', 'export default () => {}')).status).toBe(404);
  expect((await server.admin('POST', '/tokens', token)).status).toBe(404);
  const again = await server.admin('POST', '/fleets', { fleet_id: fleet.fleetId });
  expect(again).toMatchObject({ status: 409, body: { error: 'already_exists' } });
  expect((await remove(fleet, 'To go')).status).toBe(202);

  await isGone(fleet);
  const tokens = await server.admin<{ items: { token_id: string }[] }>('GET', '/tokens?limit=1000');
  expect(tokens.body.items.map(({ token_id: id }) => id)).not.toContain(made.body.token_id);

  const listed = await server.admin<{ items: { fleet_id: string }[] }>('GET', '/fleets?limit=1000');
  expect(listed.body.items.map(({ fleet_id: id }) => id)).not.toContain(fleet.fleetId);
  // Its records would be those of a new fleet.
  expect(await server.admin('POST', '/fleets', { fleet_id: fleet.fleetId })).toMatchObject({
    status: 409,
    body: { error: 'already_exists', msg: expect.stringContaining('logRetentionSeconds') },
  });
  expect((await neighbour.heartbeat()).status).toBe(201);
});

it('the command deletes a fleet once it is confirmed by its name', async () => {
  const named = await createFleet(server, { name: 'The garden' });
  const nameless = await createFleet(server);
  const command = (fleet: TestFleet, ...args: string[]) =>
    fleetpost(['fleet', 'delete', fleet.fleetId, ...args, '--data', server.report.data]);
  expect(await command(named)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('--confirm NAME'),
  });
  const wrong = await command(named, '--confirm', named.fleetId);
  expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining('not the name of the fleet') });
  expect(await command(nameless, '--confirm', '')).toMatchObject({ status: 1 });
  expect(await fleetpostJson(server, ['fleet', 'show', named.fleetId])).toMatchObject({
    deleting_since: null,
  });

  expect(await command(named, '--confirm', 'The garden')).toMatchObject({ status: 0, stderr: '' });
  const shown = await fleetpostJson(server, ['fleet', 'show', named.fleetId]);
  expect(shown).toMatchObject({ deleting_since: expect.any(String) });
  expect(await command(nameless, '--confirm', nameless.fleetId)).toMatchObject({ status: 0 });
  await Promise.all([isGone(named), isGone(nameless)]);
});

it('a deletion is in the audit log, and needs a token that may do everything', async () => {
  const fleet = await createFleet(server);
  const made = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'provisioner',
    scopes: ['provision'],
  });
  const flags = ['--data', server.report.data, '--token', made.body.token];
  const refused = await fleetpost(['fleet', 'delete', fleet.fleetId, '--confirm', fleet.fleetId, ...flags]);
  expect(refused.status).toBe(1);
  expect((await remove(fleet, fleet.fleetId)).status).toBe(202);
  const { body } = await server.admin<{ items: object[] }>('GET', `/audit?fleet=${fleet.fleetId}`);
  expect(body.items).toContainEqual(
    expect.objectContaining({ method: 'DELETE', route: '/admin/v1/fleets/:fleet_id', status: 202 }),
  );
  await isGone(fleet);
});
