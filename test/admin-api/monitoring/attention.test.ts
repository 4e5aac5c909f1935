import { expect, it } from 'vitest';
import type { AttentionDocument } from '../../../src/contract/monitoring/attention.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

it('a fleet that is well needs no attention, and one with dead letters says so', async () => {
  const server = await TestServer.shared();
  const fleet = await createFleet(server);
  const attention = async () =>
    (await server.admin<AttentionDocument>('GET', `/fleets/${fleet.fleetId}/attention`)).body.items;
  expect(await attention()).toEqual([]);
  const device = await fleet.createDevice();
  for (let count = 1; count <= 2; count += 1) {
    const { body } = await server.admin<{ mail_id: string }>('POST', `${device.adminPath}/mail/hello`, {});
    expect((await device.settle('reject', body.mail_id)).status).toBe(200);
  }
  const sentence = '2 mails died in the last 24 hours.';
  const died = {
    kind: 'dead_letters',
    name: null,
    device_id: null,
    count: 2,
    is_all: true,
    since: null,
    also: [],
  };
  expect(await attention()).toEqual([{ ...died, sentence }]);
});
