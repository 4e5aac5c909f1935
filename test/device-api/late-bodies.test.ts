/** Decision D4: credentials that change while a body is under way. */

import { beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { type RawAnswer, RawConnection } from '../harness/devices/raw.ts';
import { expectError } from '../harness/devices/routes.ts';
import { shards, TestServer } from '../harness/server/server.ts';
import { datapoint, datapointHead } from '../harness/server/vitals.ts';

/** D4: credentials hold for a body that arrives later than its head when they hold once it is complete. */
let server: TestServer;
let fleet: TestFleet;

beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
});

const body = '{"half":"a datapoint"}';

/** Sends half of a datapoint on a connection to each worker, and the rest once `meanwhile` is done. */
async function sendAround(device: TestDevice, meanwhile: () => Promise<unknown>): Promise<RawAnswer[]> {
  const wholes = [
    { text: datapoint(device, body), at: -10 },
    // Nothing but the head.
    { text: datapoint(device, body), at: -body.length },
    {
      text: `${datapointHead(device, { 'Transfer-Encoding': 'chunked' })}5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n`,
      at: -12,
    },
  ];
  const sent: { connection: RawConnection; rest: string }[] = [];
  for (const { text, at } of wholes) {
    for (let worker = 0; worker < shards; worker += 1) {
      const connection = await RawConnection.open(server);
      connection.write(text.slice(0, at));
      sent.push({ connection, rest: text.slice(at) });
    }
  }
  for (const { connection } of sent) await connection.taken();
  await meanwhile();
  for (const { connection, rest } of sent) connection.write(rest);
  const answers = await Promise.all(sent.map(({ connection }) => connection.answer()));
  for (const { connection } of sent) connection.destroy();
  return answers;
}

async function recordsOf(device: TestDevice): Promise<string[]> {
  const path = `/admin/v1/fleets/${device.fleetId}/records?kind=datapoint`;
  const headers = { authorization: `Bearer ${server.token}` };
  const lines = await (await fetch(`${server.report.admin_url}${path}`, { headers })).text();
  return lines.split('\n').filter((line) => line.includes(device.deviceId));
}

const change = (device: TestDevice, path: string, given: object): Promise<unknown> =>
  server.admin('POST', `${device.adminPath}${path}`, given);
const patch = (device: TestDevice, given: object): Promise<unknown> =>
  server.admin('PATCH', device.adminPath, given);
const remove = (device: TestDevice): Promise<unknown> => server.admin('DELETE', device.adminPath);

describe('D4: of a datapoint whose rest arrives', () => {
  it.each([
    ['after its device was disabled', 'device_disabled', (one) => patch(one, { enabled: false })],
    ['after its secret was rotated', 'device_secret_incorrect', (one) => change(one, '/rotate-secret', {})],
    ['after its device was deleted', 'device_not_found', (one) => remove(one)],
    [
      'after its device was deleted and made anew',
      'device_secret_incorrect',
      async (one) => {
        await remove(one);
        await fleet.createDevice({ device_id: one.deviceId });
      },
    ],
  ] as [string, string, (device: TestDevice) => Promise<unknown>][])(
    '%s nothing is stored: 401 %s',
    async (_, detail, meanwhile) => {
      const device = await fleet.createDevice();
      const answers = await sendAround(device, () => meanwhile(device));
      for (const answer of answers) expectError(answer, 401, 'unauthorized', { detail: detail as never });
      expect(await recordsOf(device)).toEqual([]);
    },
  );

  it.each([
    ['after mail came for its device', (one) => one.sendMail()],
    [
      'after its secret was rotated and goes on for a while',
      (one) => change(one, '/rotate-secret', { grace_seconds: 60 }),
    ],
    ['later', async () => {}],
  ] as [string, (device: TestDevice) => Promise<unknown>][])('%s it is stored', async (_, meanwhile) => {
    const device = await fleet.createDevice();
    const answers = await sendAround(device, () => meanwhile(device));
    for (const { status } of answers) expect(status).toBe(201);
    expect(await recordsOf(device)).toHaveLength(answers.length);
  });
});
