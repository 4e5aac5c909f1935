import { expect, it } from 'vitest';
import type { AttentionDocument } from '../../../src/contract/monitoring/attention.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { fleetpostJson } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 100 };
const wrong = { 'X-Device-Secret': `FOS-${'0'.repeat(32)}` };
interface Listed {
  items: Record<string, unknown>[];
  devices: number;
  is_all: boolean;
}

it('devices that are refused are counted by reason and listed, until what was refused is accepted', async () => {
  const server = await TestServer.shared();
  const fleet = await createFleet(server);
  const path = `/fleets/${fleet.fleetId}`;
  await fleet.putSchema('datapoint', 'flow', { type: 'object', properties: { rate: { type: 'number' } } });
  const ids = ['SECRET0001', 'SECRET0002', 'SCHEMA0001', 'DISABLED01', 'DELETED001', 'HEALTHY001'];
  const [secret, other, schema, disabled, deleted, healthy] = await Promise.all(
    ids.map((device_id) =>
      fleet.createDevice({ device_id, tags: device_id === 'SECRET0001' ? ['hall'] : [] }),
    ),
  );
  if (!secret || !other || !schema || !disabled || !deleted || !healthy) throw new Error('they were created');
  const item = async () => {
    const { body } = await server.admin<AttentionDocument>('GET', `${path}/attention`);
    const { sentence, device_id, count } = body.items.find(({ kind }) => kind === 'devices_refused') ?? {};
    return sentence && [sentence, device_id, count];
  };
  const listed = async (query: string) => {
    const { body } = await server.admin<{ items: { device_id: string }[] }>(
      'GET',
      `${path}/devices?${query}`,
    );
    return body.items.map(({ device_id }) => device_id);
  };
  expect((await healthy.heartbeat()).status).toBe(201);
  expect(await listed('refused=any')).toEqual([]);
  const send = (rate: unknown) => schema.request('POST', '/v1/datapoint/flow', { rate });
  expect((await send('much')).status).toBe(400);
  await expect.poll(item, patience).toEqual(['SCHEMA0001 is refused: schema flow.', 'SCHEMA0001', 1]);
  for (const device of [secret, other, deleted])
    expect((await device.request('POST', '/v1/heartbeat', undefined, wrong)).status).toBe(401);
  await server.admin('DELETE', deleted.adminPath);
  await server.admin('PATCH', disabled.adminPath, { enabled: false });
  expect((await disabled.heartbeat()).status).toBe(401);
  // Nobody's device: its id may be of anybody.
  const unknown = { ...wrong, 'X-Device-ID': 'NOBODYS001' };
  expect((await secret.request('POST', '/v1/heartbeat', undefined, unknown)).status).toBe(401);
  await expect
    .poll(item, patience)
    .toEqual(['3 devices are refused: wrong secret 2, schema flow 1.', null, 3]);
  expect(await listed('refused=any')).toEqual(['DISABLED01', 'SCHEMA0001', 'SECRET0001', 'SECRET0002']);
  expect(await listed('refused=any&limit=2')).toEqual(['DISABLED01', 'SCHEMA0001']);
  expect(await listed('refused=wrong_secret')).toEqual(['SECRET0001', 'SECRET0002']);
  expect(await listed('refused=wrong_secret&tag=hall')).toEqual(['SECRET0001']);
  expect(await listed('refused=schema_mismatch')).toEqual(['SCHEMA0001']);
  expect(await listed('refused=disabled&enabled=true')).toEqual([]);
  expect((await server.admin('GET', `${path}/devices?refused=never`)).status).toBe(400);

  const page = await server.admin<{ items: unknown[]; next: string }>(
    'GET',
    `${path}/devices?refused=any&limit=2`,
  );
  const after = encodeURIComponent(page.body.next);
  expect(await listed(`refused=any&limit=2&after=${after}`)).toEqual(['SECRET0001', 'SECRET0002']);
  const args = ['device', 'list', '--fleet', fleet.fleetId, '--refused', 'wrong_secret'];
  const shown = await fleetpostJson(server, args);
  expect(shown.items.map((one: { device_id: string }) => one.device_id)).toEqual([
    'SECRET0001',
    'SECRET0002',
  ]);

  const ofSchema = async () =>
    (await server.admin<Listed>('GET', `${path}/refusals?kind=datapoint&name=flow`)).body;
  expect(await ofSchema()).toMatchObject({
    items: [{ device_id: 'SCHEMA0001', reason: 'schema_mismatch', name: 'flow', path: '/rate', count: 1 }],
    devices: 1,
    is_all: true,
  });
  expect((await server.admin<Listed>('GET', `${path}/refusals?kind=message`)).body.items).toEqual([]);
  expect((await server.admin<Listed>('GET', `${path}/refusals?limit=1`)).body).toMatchObject({
    items: [expect.anything()],
    devices: 4,
  });

  // An event of the same name is of another schema.
  await fleet.putSchema('message', 'flow', { type: 'object', required: ['rate'] });
  expect((await schema.request('POST', '/v1/msg/flow', { none: 1 })).status).toBe(400);
  const messages = async () =>
    (await server.admin<Listed>('GET', `${path}/refusals?kind=message`)).body.items.map(({ route }) => route);
  await expect.poll(messages, patience).toEqual(['POST /v1/msg/:schema_name']);
  expect((await schema.request('POST', '/v1/msg/flow', { rate: 1 })).status).toBe(201);

  expect((await send(1)).status).toBe(201);
  expect((await secret.heartbeat()).status).toBe(201);
  await expect.poll(item, patience).toEqual(['SECRET0002 is refused: wrong secret.', 'SECRET0002', 1]);
  await expect.poll(async () => (await ofSchema()).items, patience).toEqual([]);
  const ofHour = `${path}/refusals?of=hour&kind=datapoint&name=flow`;
  expect((await server.admin<Listed>('GET', ofHour)).body).toMatchObject({
    items: [{ device_id: 'SCHEMA0001', reason: 'schema_mismatch', is_now: false }],
    devices: 1,
    devices_now: 0,
  });
  // A change of all that are refused takes those alone.
  const change = { select: { refused: 'wrong_secret' }, change: { add_tags: ['secret'] } };
  expect((await server.admin('POST', `${path}/devices:change`, change)).body).toMatchObject({ changed: 1 });
  expect(await listed('tag=secret')).toEqual(['SECRET0002']);
});
