import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { fleetpostJson } from '../harness/command.ts';
import { createFleet, type TestDevice, type TestFleet } from '../harness/device.ts';
import { closeStreams, EventStream } from '../harness/event-stream.ts';
import { TestServer } from '../harness/server.ts';

const patience = { timeout: 15_000, interval: 50 };

interface DeviceDocument {
  device_id: string;
  state: string;
  last_seen: string | null;
  last_address: string | null;
}

let server: TestServer;
let fleet: TestFleet;
let devices: TestDevice[];
beforeAll(async () => {
  server = await TestServer.start({ activityFlushSeconds: 1 });
  fleet = await createFleet(server);
  devices = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      fleet.createDevice({
        device_id: `DEVICE00${String(index).padStart(2, '0')}`,
        name: `${index % 2 ? 'door' : 'hall'} ${index}`,
        tags: index % 3 ? ['all'] : ['all', 'third'],
      }),
    ),
  );
});
afterEach(closeStreams);
afterAll(() => server[Symbol.asyncDispose]());

const idsOf = (...indexes: number[]): string[] => indexes.map((index) => devices[index]?.deviceId ?? '');

/** All pages, by the cursors. */
async function list(query: string, limit = 2): Promise<DeviceDocument[]> {
  const found: DeviceDocument[] = [];
  let after = '';
  for (;;) {
    const path = `/fleets/${fleet.fleetId}/devices?limit=${limit}&after=${encodeURIComponent(after)}&${query}`;
    const { status, body } = await server.admin<{ items: DeviceDocument[]; next: string | null }>(
      'GET',
      path,
    );
    expect(status, JSON.stringify(body)).toBe(200);
    found.push(...body.items);
    if (body.next === null) return found;
    after = body.next;
  }
}
const found = async (query: string): Promise<string[]> =>
  (await list(query)).map(({ device_id }) => device_id).sort();

describe('finding devices', () => {
  it('by tag, name, whether they are enabled, and all of it together, a page at a time', async () => {
    await server.admin('PATCH', devices[3]?.adminPath ?? '', { enabled: false });
    expect(await found('')).toEqual(idsOf(...devices.keys()));
    expect(await found('tag=third')).toEqual(idsOf(0, 3, 6, 9));
    expect(await found('name_prefix=door')).toEqual(idsOf(1, 3, 5, 7, 9, 11));
    expect(await found('enabled=false')).toEqual(idsOf(3));
    expect(await found('tag=third&name_prefix=door&enabled=true')).toEqual(idsOf(9));
    expect(await found('tag=none')).toEqual([]);
    const args = ['device', 'list', '--fleet', fleet.fleetId, '--tag', 'third', '--enabled', '--limit', '2'];
    const first = await fleetpostJson(server, args);
    const second = await fleetpostJson(server, [...args, '--after', first.next]);
    expect([...first.items, ...second.items].map(({ device_id }) => device_id)).toEqual(idsOf(0, 6, 9));
  });

  it('by when they were seen, and from where', async () => {
    expect((await devices[1]?.heartbeat())?.status).toBe(201);
    await expect.poll(() => found('seen_after=2020-01-01T00:00:00Z'), patience).toEqual(idsOf(1));
    const [seen] = await list('seen_after=2020-01-01T00:00:00Z');
    expect(seen).toMatchObject({ state: 'active', last_address: '127.0.0.1' });
    const at = seen?.last_seen ?? '';
    expect(await found(`seen_after=${at}`)).toEqual(idsOf(1));
    expect(await found(`seen_before=${at}`)).not.toContain(devices[1]?.deviceId);
    const later = new Date(Date.parse(at) + 1).toISOString();
    expect(await found(`seen_after=${later}`)).toEqual([]);
    expect(await found(`seen_before=${later}`)).toHaveLength(12);
    expect((await server.admin('GET', `/fleets/${fleet.fleetId}/devices?seen_after=soon`)).status).toBe(400);
    const past = await server.admin('GET', `/fleets/${fleet.fleetId}/devices?after=t.AAAA`);
    expect([past.status, past.body.error]).toEqual([400, 'bad_request']);
  });

  it('by state: a stream that is open, seen within the time of the fleet, or neither', async () => {
    const open = [devices[2], devices[4], devices[5]] as TestDevice[];
    const streams = await Promise.all(open.map((device) => EventStream.open(device)));
    expect(await found('state=connected')).toEqual(idsOf(2, 4, 5));
    expect(await found('state=connected&name_prefix=hall')).toEqual(idsOf(2, 4));
    expect(await found('state=active')).not.toContain(devices[2]?.deviceId);
    expect(await found('state=offline')).not.toContain(devices[2]?.deviceId);
    await expect.poll(() => found('state=active'), patience).toEqual(idsOf(1));
    expect(await found('state=offline')).toEqual(idsOf(0, 3, 6, 7, 8, 9, 10, 11));
    const counts = await fleetpostJson(server, ['fleet', 'counts', '--fleet', fleet.fleetId]);
    expect(counts).toMatchObject({ devices: 12, disabled: 1, connected: 3 });
    const metrics = await (await fetch(`${server.report.admin_url}/metrics`)).text();
    const sum = (name: string): number =>
      [...metrics.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))].reduce(
        (all, [, n]) => all + Number(n),
        0,
      );
    expect(sum('fleetpost_devices_connected')).toBe(3);
    // And the demo's.
    expect(sum('fleetpost_devices')).toBe(13);
    await Promise.all(streams.map((stream) => stream.close()));
    await expect.poll(() => found('state=connected'), patience).toEqual([]);
    await expect.poll(() => found('state=active'), patience).toEqual(idsOf(1, 2, 4, 5));
    await server.admin('PATCH', `/fleets/${fleet.fleetId}`, { active_seconds: 1 });
    await expect.poll(() => found('state=active'), patience).toEqual([]);
    await server.admin('PATCH', `/fleets/${fleet.fleetId}`, { active_seconds: null });
    expect(await found('state=active')).toEqual(idsOf(1, 2, 4, 5));
    await expect
      .poll(async () => (await server.admin('GET', `/fleets/${fleet.fleetId}/counts`)).body, patience)
      .toMatchObject({ devices: 12, connected: 0, active: 4 });
  });
});
