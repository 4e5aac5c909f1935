/** The budget of parsing (CheckBudget), on every route that takes a body of a device. */
import { expect, it } from 'vitest';
import {
  createFleet,
  type DeviceAnswer,
  oneConnection,
  type TestDevice,
} from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';

/** An object for each name that there is, each of which the engine lays out anew: slow to parse for its bytes. */
function costlyJson(bytes: number): string {
  let text = '{"r":[{"a":1}';
  for (let n = 0; text.length < bytes - 12; n += 1) text += `,{"${n.toString(36)}":1}`;
  return `${text}]}`;
}

it('bodies that take long to parse are told to come again, whatever the route, but small ones and those of other fleets are not', async () => {
  await using server = await TestServer.start({
    schemaCheckMillisecondsPerSecondMax: 1,
    deviceBytesPerSecondMax: 0,
  });
  // Each worker has its own account, and a connection its worker.
  const agent = oneConnection(server);
  const [fleet, others] = [await createFleet(server), await createFleet(server)];
  const [device, other] = [await fleet.createDevice(), await others.createDevice()];
  const { mailId } = await device.sendMail();
  const send = (method: string, path: string, body: string, by: TestDevice = device): Promise<DeviceAnswer> =>
    by.request(method, path, body, {}, agent);
  const large = costlyJson(65_000);
  const routes: [method: string, path: string, body: string][] = [
    ['POST', '/v1/datapoint/reading', large],
    ['POST', '/v1/msg/note', large],
    ['POST', '/v1/sync', `{"records":[${'1,'.repeat(499)}1],"settle":[${' '.repeat(2_000)}]}`],
    ['PUT', `/v1/mailbox/ack/${mailId}`, costlyJson(4_000)],
  ];
  for (const [method, path, body] of routes) {
    let refused: DeviceAnswer | undefined;
    await until(async () => {
      await send('POST', '/v1/datapoint/reading', large);
      refused = await send(method, path, body);
      return refused.status === 503;
    });
    expect(refused?.json.msg).toContain('(schemaCheckMillisecondsPerSecondMax)');
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  expect((await send('POST', '/v1/datapoint/reading', '{"a":1}')).status).toBe(201);
  expect((await send('POST', '/v1/datapoint/reading', large, other)).status).toBe(201);
  await agent.destroy();
});
