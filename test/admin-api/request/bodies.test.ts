import { expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

it('a document beyond the usual size has so many values, for it is parsed in one piece', async () => {
  const server = await TestServer.shared();
  const { fleetId } = await createFleet(server);
  const path = `/fleets/${fleetId}/actions/large`;
  const source = `export default () => {} // ${'x'.repeat(60_000)}`;
  const put = (payload: object) =>
    server.admin<{ msg: string }>('PUT', path, {
      source,
      language: 'javascript',
      on: [{ kind: 'message', schema: 'note' }],
      tests: [{ record: { device: 'SENSOR0001', payload } }],
    });
  const numbers = (count: number) => Array.from({ length: count }, () => 1);
  expect((await put({ numbers: numbers(7_000) })).body).toMatchObject({ version: 1 });
  const many = await put({ numbers: numbers(33_000) });
  expect([many.status, many.body.msg]).toEqual([413, expect.stringContaining('may have 32768 values')]);
  // One after another, and none forgotten.
  const all = await Promise.all([1, 2, 3].map((more) => put({ numbers: numbers(more) })));
  expect(all.map(({ status }) => status)).toEqual([200, 200, 200]);
});
