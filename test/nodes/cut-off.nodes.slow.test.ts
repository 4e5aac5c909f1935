/** The end of a node whose database cannot be reached. */

import { expect, it } from 'vitest';
import { RelayPath } from '../harness/postgres/database-path.ts';
import { Postgres } from '../harness/postgres/postgres.ts';
import { fleetpost } from '../harness/server/command.ts';
import { TestServer } from '../harness/server/server.ts';

it('a node that is cut off from its database ends in order all the same, within its time', async () => {
  await using postgres = await Postgres.start();
  const url = await postgres.create();
  const direct = JSON.stringify({ engine: 'postgres', shards: [url] });
  expect((await fleetpost(['migrate'], { FLEETPOST_STORE: direct })).status).toBe(0);
  await using path = await RelayPath.start();
  path.lead(postgres.socket);
  const [database] = /\/test_[0-9a-f]+/.exec(url) ?? [];
  const store = {
    engine: 'postgres' as const,
    shards: [`postgres://postgres@127.0.0.1:${path.port}${database}`],
  };
  await using node = await TestServer.start({ store, shards: 2, shutdownSeconds: 2 });
  path.cut();
  // 2 s for requests in flight, and 10 for the database.
  expect(await node.stop()).toBe(0);
});
