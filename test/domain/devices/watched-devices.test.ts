import { expect, it } from 'vitest';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

/** So that nothing but being watched explains that a fetch is written. */
const activityFlushSeconds = 60;

async function fetchesOf({ server, adminPath }: TestDevice): Promise<number> {
  const { body } = await server.admin<{ items: { fetch_count: number }[] }>('GET', `${adminPath}/mail`);
  return body.items[0]?.fetch_count ?? 0;
}

it('D13: the fetches of a device whose mail somebody looks at are written at once, of another one later', async () => {
  await using server = await TestServer.start({ activityFlushSeconds });
  const fleet = await createFleet(server);
  const [watched, other, streamed] = await Promise.all([0, 1, 2].map(() => fleet.createDevice()));
  if (!watched || !other || !streamed) throw new Error('three devices were made');
  for (const device of [watched, other, streamed]) await device.sendMail();
  const { body } = await server.admin<{ items: { mail_id: string }[] }>('GET', `${watched.adminPath}/mail`);
  expect((await watched.next()).status).toBe(200);
  const receipt = `${watched.adminPath}/mail/${body.items[0]?.mail_id}`;
  await expect
    .poll(async () => (await server.admin('GET', receipt)).body)
    .toMatchObject({ fetch_count: 1, first_fetched_at: expect.any(String) });
  for (let count = 0; count < 20; count += 1) await watched.next();
  await expect.poll(() => fetchesOf(watched)).toBe(21);

  const stopping = new AbortController();
  const stream = await fetch(
    `${server.report.admin_url}/admin/v1/fleets/${fleet.fleetId}/records?follow=true&device=${streamed.deviceId}`,
    { headers: { authorization: `Bearer ${server.token}` }, signal: stopping.signal },
  );
  expect((await other.next()).status).toBe(200);
  expect((await streamed.next()).status).toBe(200);
  const reader = stream.body?.getReader();
  let text = '';
  while (!text.includes('"fetched"')) {
    const { value, done } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) break;
    text += Buffer.from(value).toString();
  }
  expect(text).toContain(streamed.deviceId);
  stopping.abort();
  expect(await fetchesOf(other)).toBe(0);
});
