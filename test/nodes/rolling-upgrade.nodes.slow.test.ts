/** Rolling upgrades: nodes of two versions on one store. */

import { expect, it } from 'vitest';
import type { ServerDocument } from '../../src/contract/server.ts';
import { programVersion } from '../../src/core/telemetry/version.ts';
import { migrations } from '../../src/storage/postgres/schema/migrations.ts';
import { createFleet } from '../harness/devices/device.ts';
import { fleetpostProcess } from '../harness/server/command.ts';
import { createStore, TestServer, temporaryFolder } from '../harness/server/server.ts';
import { queryDatabase } from '../harness/storage/log.ts';

/** Migration of a newer program: it adds. */
const newerTables = [
  'ALTER TABLE device ADD COLUMN of_newer text',
  'ALTER TABLE mail ADD COLUMN of_newer text',
  'ALTER TABLE record ADD COLUMN of_newer text',
];
const joins = `INSERT INTO node (node, until_ms, version)
  VALUES ('newer', floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 600000, '9.9.9')`;

it('amid a rolling upgrade a node of the version before starts and serves, names both, and goes no further', async () => {
  const store = await createStore();
  const [url = ''] = store.shards;
  const migrated = (version: number) => queryDatabase(url, 'INSERT INTO migration VALUES ($1, 0)', [version]);
  for (const text of newerTables) await queryDatabase(url, text);
  await migrated(migrations.length + 1);
  await queryDatabase(url, joins);
  {
    await using server = await TestServer.start({ store, shards: 2, logLevel: 'info' });
    await expect.poll(() => server.stderr).toMatch(/"shards":2,"databases":1,"msg":"ready"/);
    expect(server.stderr).toContain(`nodes of versions ${programVersion()} and 9.9.9`);
    const { body } = await server.admin<ServerDocument>('GET', '/server');
    expect(body.program_versions).toEqual([programVersion(), '9.9.9']);
    const fleet = await createFleet(server);
    const device = await fleet.createDevice();
    expect((await device.heartbeat()).status).toBe(201);
    expect((await device.request('POST', '/v1/datapoint/reading', { value: 1 })).status).toBe(201);
    await device.sendMail('note', '{}');
    expect((await device.next()).status).toBe(200);
  }
  // A tool would leave behind what it does not know.
  const copied = await fleetpostProcess(['copy', '--from', url, '--to', temporaryFolder()]);
  const newer = /newer than this program/;
  expect(copied).toMatchObject({ status: 1, stderr: expect.stringMatching(newer) });
  await migrated(migrations.length + 2);
  await expect(TestServer.start({ store })).rejects.toThrow(newer);
});
