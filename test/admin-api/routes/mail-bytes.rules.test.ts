/** The bytes that the waiting mail of one fleet may have, whatever queues it. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { waitingBytesOf } from '../../../src/domain/mail/mail-bytes.ts';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { Broadcasts } from '../../harness/features/broadcast.ts';
import { TestServer } from '../../harness/server/server.ts';

const ofAll = 200_000;
const own = 65_536;
const payload = JSON.stringify({ letters: 'x'.repeat(10_000) });
const one = waitingBytesOf(payload.length);
/** What is known of other shards may be a second old. */
const soon = { timeout: 60_000, interval: 50 };

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({ mailBytesPerFleetMax: ofAll });
});
afterAll(() => server[Symbol.asyncDispose]());

const bytesOf = async ({ fleetId }: TestFleet): Promise<unknown> =>
  (await server.admin('GET', `/fleets/${fleetId}/counts`)).body.mail_bytes;
const limitOf = async ({ fleetId }: TestFleet, max?: number | null): Promise<unknown> => {
  const path = `/fleets/${fleetId}`;
  const answer =
    max === undefined
      ? await server.admin('GET', path)
      : await server.admin('PATCH', path, { mail_bytes_max: max });
  return answer.body.mail_bytes_max;
};

/** Sends until no more is taken; answers the ids of what was. */
async function fill(device: TestDevice): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const { status, mailId, body } = await device.sendMail('note', payload);
    if (status !== 201) {
      expect([status, body.error]).toEqual([409, 'fleet_mail_full']);
      expect(body.msg).toContain('(mailBytesPerFleetMax, mail_bytes_max)');
      return ids;
    }
    ids.push(mailId);
  }
}

it('a fleet that is full is refused mail, however it is sent, while another sends on; what ends makes room', async () => {
  const fleet = await createFleet(server, { mail_bytes_max: own });
  const others = await createFleet(server);
  const [door, to, second, other] = [
    await fleet.createDevice(),
    await fleet.createDevice(),
    await fleet.createDevice(),
    await others.createDevice(),
  ];
  const { mailId: dead } = await to.sendMail('note', payload);
  expect((await to.settle('reject', dead)).status).toBe(200);
  const ids = await fill(to);
  expect(ids).toHaveLength(Math.floor(own / one));
  expect(await bytesOf(fleet)).toBe(ids.length * one);

  const beyond: string[] = [];
  await expect
    .poll(async () => {
      const { status, mailId, body } = await second.sendMail('note', payload);
      if (status === 201) beyond.push(mailId);
      return body.error;
    }, soon)
    .toBe('fleet_mail_full');
  for (const mailId of beyond) await server.admin('DELETE', `${second.adminPath}/mail/${mailId}`);
  const refused = await server.admin<{ items: { error: string }[] }>('GET', `${second.adminPath}/refusals`);
  expect(refused.body.items.map(({ error }) => error)).toEqual(['fleet_mail_full']);
  const letters = `/fleets/${fleet.fleetId}/dead-letters:replay`;
  const letter = { letters: [{ mail_id: dead, device_id: to.deviceId }] };
  const replayed = await server.admin<{ items: { result: string }[] }>('POST', letters, letter);
  expect(replayed.body.items.map(({ result }) => result)).toEqual(['fleet_mail_full']);

  const broadcasts = new Broadcasts(fleet);
  const devices = [to.deviceId];
  const put = await broadcasts.put({ name: 'note', payload: JSON.parse(payload), to: { devices } });
  const done = await broadcasts.done(put.broadcast_id);
  expect(done).toMatchObject({ queued: 0, refused: 1, reasons: { fleet_mail_full: 1 } });

  await fleet.putSchema('message', 'opened', anyObject);
  const source = `export default (record, fleet) => fleet.send('${to.deviceId}', 'note', ${payload});`;
  expect((await fleet.putAction('relay', source)).status).toBe(201);
  expect((await door.request('POST', '/v1/msg/opened', {})).status).toBe(201);
  const deadRuns = `/fleets/${fleet.fleetId}/actions/relay/dead-letters`;
  const runs = async (): Promise<unknown> => (await server.admin('GET', deadRuns)).body.items;
  await expect
    .poll(runs, soon)
    .toMatchObject([{ error: { code: 'mail_refused' }, refused: [{ reason: 'fleet_mail_full' }] }]);

  expect((await other.sendMail('note', payload)).status).toBe(201);
  expect(await bytesOf(others)).toBe(one);

  expect((await to.settle('requeue', ids[0] ?? '')).status).toBe(200);
  expect((await to.sendMail('note', payload)).status).toBe(409);
  expect((await to.settle('ack', ids[0] ?? '')).status).toBe(200);
  await expect.poll(async () => (await to.sendMail('note', payload)).status, soon).toBe(201);
  expect((await server.admin('DELETE', to.adminPath)).status).toBe(204);
  expect(await bytesOf(fleet)).toBe(0);
});

it('a fleet can lower the limit of all, and not raise it', async () => {
  const fleet = await createFleet(server);
  expect(await limitOf(fleet)).toBe(ofAll);
  expect(await limitOf(fleet, own)).toBe(own);
  const device = await fleet.createDevice();
  await fill(device);
  expect(await limitOf(fleet, 10 * ofAll)).toBe(ofAll);
  await expect.poll(async () => (await device.sendMail('note', payload)).status, soon).toBe(201);
  await fill(device);
  expect(await bytesOf(fleet)).toBe(Math.floor(ofAll / one) * one);
  // What waits stays, whatever the limit.
  expect(await limitOf(fleet, own)).toBe(own);
  await expect.poll(async () => (await device.sendMail('note', payload)).status, soon).toBe(409);
  expect(await bytesOf(fleet)).toBe(Math.floor(ofAll / one) * one);
  expect(await limitOf(fleet, null)).toBe(ofAll);
  const tooLow = await server.admin('PATCH', `/fleets/${fleet.fleetId}`, { mail_bytes_max: own - 1 });
  expect(tooLow.status).toBe(400);
});
