/** Of `src/admin-api/routes/device-list.ts`, and of the tags that devices have. */

import { expect, it } from 'vitest';
import { createFleet, type TestFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 100 };
type Page = { items: { device_id: string; last_seen: string | null }[]; next: string | null };

async function pages(server: TestServer, fleet: TestFleet, query: string): Promise<Page['items']> {
  const found: Page['items'] = [];
  for (let after = ''; ; ) {
    const path = `/fleets/${fleet.fleetId}/devices?limit=2&after=${encodeURIComponent(after)}&${query}`;
    const { status, body } = await server.admin<Page>('GET', path);
    expect(status, JSON.stringify(body)).toBe(200);
    found.push(...body.items);
    if (body.next === null) return found;
    after = body.next;
  }
}

it('a list goes by last sight in both directions, a page at a time, whatever else it is filtered by', async () => {
  const server = await TestServer.shared();
  const fleet = await createFleet(server);
  const devices = await Promise.all(
    Array.from({ length: 7 }, (_, index) =>
      fleet.createDevice({ device_id: `ORDERED00${index}`, tags: index % 2 ? ['odd'] : [] }),
    ),
  );
  await Promise.all(devices.slice(0, 4).map((device) => device.heartbeat()));
  const seen = async (query: string) =>
    (await pages(server, fleet, query)).map(({ last_seen }) => last_seen !== null);
  await expect
    .poll(() => seen('order=seen'), patience)
    .toEqual([false, false, false, true, true, true, true]);
  expect(await seen('order=-seen')).toEqual([true, true, true, true, false, false, false]);
  const ids = async (query: string) => (await pages(server, fleet, query)).map(({ device_id }) => device_id);
  expect(await ids('order=-seen')).toEqual((await ids('order=seen')).reverse());
  expect((await ids('order=-seen&tag=odd')).slice(0, 2).sort()).toEqual(['ORDERED001', 'ORDERED003']);
  expect((await ids('order=seen&tag=odd'))[0]).toBe('ORDERED005');
  // A position of another order is refused.
  const path = `/fleets/${fleet.fleetId}/devices?limit=2`;
  const { body } = await server.admin<Page>('GET', `${path}&order=seen`);
  const other = `${path}&order=-seen&after=${encodeURIComponent(body.next ?? '')}`;
  expect((await server.admin('GET', other)).status).toBe(400);
  expect((await server.admin('GET', `${path}&order=name`)).status).toBe(400);
});

it('tags of a fleet are told with how many devices have them, the most frequent first', async () => {
  const server = await TestServer.shared();
  const fleet = await createFleet(server);
  await Promise.all([['hall', 'old'], ['hall'], []].map((tags) => fleet.createDevice({ tags })));
  const { body } = await server.admin('GET', `/fleets/${fleet.fleetId}/tags`);
  expect(body).toEqual({
    items: [
      { tag: 'hall', devices: 2 },
      { tag: 'old', devices: 1 },
    ],
    is_all: true,
  });
});
