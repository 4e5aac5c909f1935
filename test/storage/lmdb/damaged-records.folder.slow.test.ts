/** Damaged records of a folder that is served. */

import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { shardOf } from '../../../src/domain/placement.ts';
import type { Environment } from '../../../src/storage/lmdb/environment/environment.ts';
import { keyOfDevice, keyOfMail } from '../../../src/storage/lmdb/layout/keys.ts';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { metric, pause, until } from '../../harness/server/vitals.ts';
import { eachShard } from '../../harness/storage/log.ts';

/** Writes where the device lives, with the store's own code, while no server runs. */
async function damage(
  server: TestServer,
  change: (environment: Environment, isHome: (device: TestDevice) => boolean) => void,
): Promise<void> {
  let shard = 0;
  await eachShard(server.report, async (environment) => {
    const isHome = ({ fleetId, deviceId }: TestDevice): boolean =>
      shardOf(deviceKeyOf(fleetId, deviceId), server.report.shards) === shard;
    await environment.write(() => change(environment, isHome));
    shard += 1;
  });
}

const keyOf = ({ fleetId, deviceId }: TestDevice) => deviceKeyOf(fleetId, deviceId);
const commits = async (server: TestServer): Promise<number> =>
  (await metric(server, 'fleetpost_commits_total')).reduce((sum, one) => sum + one, 0);

it('a damaged record costs the requests that need it a 500, and nobody else anything', {
  timeout: 120_000,
}, async () => {
  const data = temporaryFolder();
  const first = await TestServer.start({}, data);
  const fleet = await createFleet(first, { mail_ttl_seconds: 1 });
  const lasting = await createFleet(first);
  await lasting.putSchema('reply', 'valve', { type: 'object' });
  const [noRecord, noMailbox, noMail, expiring] = await Promise.all([
    lasting.createDevice(),
    lasting.createDevice(),
    lasting.createDevice(),
    fleet.createDevice(),
  ]);
  const healthy = await Promise.all(Array.from({ length: 6 }, () => fleet.createDevice()));
  const { mailId } = await noMail.sendMail('valve');
  const { mailId: otherId } = await noMail.sendMail();
  await noMailbox.sendMail();
  await first.stop();

  await damage(first, (environment, isHome) => {
    const cut = Buffer.from([1]);
    if (isHome(noRecord)) environment.table('devices').putSync(keyOfDevice(keyOf(noRecord)), cut);
    if (isHome(noMailbox)) environment.table('mailboxes').putSync(keyOfDevice(keyOf(noMailbox)), cut);
    if (isHome(noMail)) environment.table('mail').putSync(keyOfMail(keyOf(noMail), 1), cut);
  });

  const second = await TestServer.start({}, data);
  const failed = async (device: TestDevice, method: string, path: string): Promise<void> => {
    const answer = await device.on(second).request(method, path);
    expect([path, answer.status, answer.json?.error]).toEqual([path, 500, 'internal_error']);
  };
  await failed(noRecord, 'POST', '/v1/heartbeat');
  await failed(noMailbox, 'GET', '/v1/mailbox/next');
  await failed(noMailbox, 'PUT', `/v1/mailbox/ack/${mailId}`);
  await failed(noMail, 'GET', '/v1/mailbox/next');
  await failed(noMail, 'PUT', `/v1/mailbox/ack/${mailId}`);
  const next = await noMail.on(second).request('PUT', `/v1/mailbox/ack/${otherId}`, undefined, {
    Prefer: 'return=representation',
  });
  expect([next.status, next.text]).toEqual([200, '{"ok":true}']);
  const records = [{ kind: 'datapoint', schema: 'reading', payload: { a: 1 } }];
  const damaged = expect.objectContaining({ status: 500, error: 'internal_error' });
  for (const device of [noMailbox, noMail]) {
    for (const settlement of [{ verb: 'ack' }, { verb: 'requeue' }, { verb: 'ack', reply: { a: 1 } }]) {
      const settle = [{ id: mailId, ...settlement }];
      const { status, json } = await device.on(second).request('POST', '/v1/sync', { records, settle });
      expect([settlement, status, json.records, json.settled]).toEqual([
        settlement,
        200,
        [{ status: 201 }],
        [damaged],
      ]);
      expect(json).not.toHaveProperty('mail');
    }
    const reading = await device.on(second).request('POST', '/v1/sync', {});
    expect([reading.status, reading.json.mail]).toEqual([200, undefined]);
  }
  expect(second.stderr).toContain('mail of a sync cannot be read or settled');
  expect((await noMail.on(second).heartbeat()).status).toBe(201);
  expect((await noMailbox.on(second).request('POST', '/v1/datapoint/reading', { a: 1 })).status).toBe(201);
  expect(second.stderr).toContain('a device record is damaged');
  expect(second.stderr).toContain('a mailbox record is damaged');
  expect(second.stderr).toContain('a mail record is damaged');
  for (const { secret } of [noRecord, noMailbox, noMail]) expect(second.stderr).not.toContain(secret);

  // Mail that is over in a second, some of it behind a record that the sweeper cannot read.
  for (const device of [expiring, ...healthy]) {
    expect((await device.on(second).sendMail()).status).toBe(201);
  }
  await second.kill();
  await damage(second, (environment, isHome) => {
    const cut = Buffer.from([1]);
    if (isHome(expiring)) environment.table('mailboxes').putSync(keyOfDevice(keyOf(expiring)), cut);
  });
  await using third = await TestServer.start({}, data);
  for (const device of healthy) {
    await until(async () => (await device.on(third).request('GET', '/v1/mailbox/size')).json.size === 0);
  }
  await until(() => third.stderr.includes('cannot be expired'));
  // It was said once, and the sweeper no longer tries: an idle server commits nothing for a while.
  await until(async () => {
    const before = await commits(third);
    await pause(2_500);
    return (await commits(third)) === before;
  });
  expect(third.stderr.split('write failed and was rolled back')).toHaveLength(2);
  expect(await third.stop()).toBe(0);
  rmSync(data, { recursive: true });
});
