/** The idle timeout of console sessions, over hours of a faked clock. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { FakedClock } from '../../harness/machine/faked-clock.ts';
import { TestServer } from '../../harness/server/server.ts';
import { as, sessionBearer } from '../../harness/server/token.ts';
import { pause } from '../../harness/server/vitals.ts';

const minute = 60;

const clock = new FakedClock();
let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start({}, undefined, { environment: clock.environment });
});
afterAll(() => server.stop());

/** The token of a new session of the console. */
async function logIn(): Promise<string> {
  const { code } = (await server.admin<{ code: string }>('POST', '/console-codes', {})).body;
  return sessionBearer(await as(server, '', 'POST', '/console-sessions', { code }));
}

it('a session that follows the records is not idle, and one that asks nothing ends after an hour', async () => {
  const { fleetId } = await createFleet(server);
  const [following, idle] = [await logIn(), await logIn()];
  const get = (path: string, token: string): Promise<Response> =>
    fetch(`${server.report.admin_url}/admin/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
  const stream = await get(`/fleets/${fleetId}/records?follow=true`, following);
  let isOpen = true;
  const end = (): void => {
    isOpen = false;
  };
  void stream.body?.pipeTo(new WritableStream()).then(end, end);
  for (const minutes of [50, 100]) {
    clock.set(minutes * minute);
    // Open requests are looked at each second.
    await pause(2_500);
  }
  expect(isOpen).toBe(true);
  expect((await get('/self', following)).status).toBe(200);
  const refused = await get('/self', idle);
  expect(refused.status).toBe(401);
  expect(await refused.text()).toContain('Your session has ended (an hour without a request).');
  clock.set(12 * 60 * minute);
  expect(await (await get('/self', following)).text()).toContain(
    'Your session has ended (12 h after the login).',
  );
});
