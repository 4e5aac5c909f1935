/** A data folder whose path is gone for a while. */

import { renameSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

const warning = 'free disk space unknown';

it('a data folder that is out of reach by its path for a while costs no write, then or later', async () => {
  await using server = await TestServer.start({ shards: 1 });
  const device = await (await createFleet(server)).createDevice();
  const { data } = server.report;
  const send = async (): Promise<number> =>
    (await device.request('POST', '/v1/datapoint/reading', { a: 1 })).status;
  expect(await send()).toBe(201);

  renameSync(data, `${data}-away`);
  const statuses = new Set<number>();
  try {
    // The free space is looked at ten times a second: this goes on for some looks.
    const endMs = performance.now() + 3_000;
    while (performance.now() < endMs) statuses.add(await send());
  } finally {
    renameSync(`${data}-away`, data);
  }
  expect([...statuses]).toEqual([201]);
  expect(await send()).toBe(201);
  expect(server.stderr.split(warning)).toHaveLength(2);

  const beganMs = performance.now();
  expect(await server.stop()).toBe(0);
  expect(performance.now() - beganMs).toBeLessThan(10_000);
});
