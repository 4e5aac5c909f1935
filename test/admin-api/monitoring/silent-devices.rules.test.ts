import { afterEach, expect, it } from 'vitest';
import type { AttentionDocument } from '../../../src/contract/monitoring/attention.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { closeStreams, EventStream } from '../../harness/devices/event-stream.ts';
import { fleetpostJson } from '../../harness/server/command.ts';
import { TestServer } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 100 };
afterEach(closeStreams);

it('devices that fell silent are counted, named if it is one, and listed: not those that never called, are connected, disabled, refused or back', async () => {
  const server = await TestServer.shared();
  const fleet = await createFleet(server, { active_seconds: 2 });
  const path = `/fleets/${fleet.fleetId}`;
  const ids = [
    'SILENT0001',
    'SILENT0002',
    'DISABLED01',
    'CONNECTED1',
    'BACKAGAIN1',
    'REFUSED001',
    'NEVERCALLD',
  ];
  const [one, two, disabled, connected, back, refused] = await Promise.all(
    ids.map((device_id) => fleet.createDevice({ device_id, name: device_id === 'SILENT0001' ? 'Pump' : '' })),
  );
  if (!one || !two || !disabled || !connected || !back || !refused)
    throw new Error('the devices were created');
  const items = async () =>
    (await server.admin<AttentionDocument>('GET', `${path}/attention`)).body.items.map(
      ({ kind, device_id, count, sentence }) => ({ kind, device_id, count, sentence }),
    );
  const silent = async (query = '') => {
    const after = new Date(Date.now() - 3_600_000).toISOString();
    const list = `${path}/devices?silent_after=${after}${query}`;
    const { body } = await server.admin<{ items: { device_id: string }[] }>('GET', list);
    return body.items.map(({ device_id }) => device_id).sort();
  };
  expect((await one.heartbeat()).status).toBe(201);
  await expect.poll(() => silent(), patience).toEqual(['SILENT0001']);
  await expect.poll(items, patience).toEqual([
    {
      kind: 'devices_silent',
      device_id: 'SILENT0001',
      count: 1,
      sentence: expect.stringMatching(/^SILENT0001 \(Pump\) fell silent \d+ s ago\.$/),
    },
  ]);
  await Promise.all([two, disabled, connected, back, refused].map((device) => device.heartbeat()));
  await server.admin('PATCH', disabled.adminPath, { enabled: false });
  await EventStream.open(connected);
  const wrong = { 'X-Device-Secret': `FOS-${'0'.repeat(32)}` };
  const calling = setInterval(() => {
    void back.heartbeat();
    void refused.request('POST', '/v1/heartbeat', undefined, wrong);
  }, 500);
  try {
    await expect.poll(() => silent(), patience).toEqual(['SILENT0001', 'SILENT0002']);
    await expect.poll(items, patience).toEqual([
      expect.objectContaining({ kind: 'devices_refused', device_id: 'REFUSED001' }),
      {
        kind: 'devices_silent',
        device_id: null,
        count: 2,
        sentence: expect.stringMatching(/^2 devices fell silent in the last \d+ s\.$/),
      },
    ]);
    expect(await silent('&enabled=false')).toEqual(['DISABLED01']);
    expect(await silent('&id_prefix=SILENT&state=offline')).toEqual(['SILENT0001', 'SILENT0002']);
    const excluded = `${path}/devices?state=active&silent_after=2026-01-01T00:00:00Z`;
    expect((await server.admin('GET', excluded)).status).toBe(400);
    const args = ['device', 'list', '--fleet', fleet.fleetId, '--silent-after', '1h'];
    const listed = await fleetpostJson(server, args);
    expect(listed.items.map((one: { device_id: string }) => one.device_id).sort()).toEqual([
      'SILENT0001',
      'SILENT0002',
    ]);
    // Long ago is no news.
    const later = new Date(Date.now() + 60_000).toISOString();
    const none = await server.admin('GET', `${path}/devices?silent_after=${later}`);
    expect(none.body).toMatchObject({ items: [] });
  } finally {
    clearInterval(calling);
  }
});

it('many that fall silent within the hour come first', async () => {
  const server = await TestServer.shared();
  const fleet = await createFleet(server, { active_seconds: 1 });
  const devices = await Promise.all(Array.from({ length: 12 }, () => fleet.createDevice()));
  await Promise.all(devices.map((device) => device.heartbeat()));
  const stuck = devices[0];
  await server.admin('POST', `${stuck?.adminPath}/mail/hello?ttl_seconds=1`, {});
  const first = async () => {
    const { body } = await server.admin<AttentionDocument>('GET', `/fleets/${fleet.fleetId}/attention`);
    return body.items[0];
  };
  await expect.poll(first, patience).toMatchObject({
    kind: 'many_devices_silent',
    count: 12,
    since: expect.stringMatching(/Z$/),
    sentence: expect.stringMatching(/^12 devices fell silent in the last \d+ s\.$/),
  });
});
