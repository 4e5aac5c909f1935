import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { AuditEntryDocument } from '../../../src/contract/access/audit.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { auditEntries } from '../../harness/features/audit.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { engine, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';
import { isStored } from '../../harness/storage/stored.ts';

it('across kill -9: tokens stay, no change is without its entry, and both are bounded', async () => {
  const data = temporaryFolder();
  const first = await TestServer.start({ apiTokensMax: 2 }, data);
  const made: { token: string; token_id: string }[] = [];
  for (const name of ['one', 'two']) {
    const answer = await first.admin<{ token: string; token_id: string }>('POST', '/tokens', {
      name,
      scopes: ['read'],
    });
    made.push(answer.body);
  }
  expect(await first.admin('POST', '/tokens', { name: 'three', scopes: ['read'] })).toMatchObject({
    status: 409,
    body: { error: 'limit_reached', msg: expect.stringContaining('apiTokensMax') },
  });
  expect((await first.admin('DELETE', `/tokens/${made[0]?.token_id}`)).status).toBe(204);
  const { fleetId } = await createFleet(first);
  const answered: string[] = [];
  const work = async (): Promise<void> => {
    for (;;) {
      const { body } = await first.admin<{ device_id: string }>('POST', `/fleets/${fleetId}/devices`, {});
      answered.push(body.device_id);
    }
  };
  const workers = Array.from({ length: 8 }, () => work().catch(() => {}));
  await until(() => answered.length > 100);
  await first.kill();
  await Promise.all(workers);

  const file = join(temporaryFolder(), 'fleetpost.json');
  writeFileSync(file, '{}');
  await using second = await TestServer.start({}, data, { flags: ['--config', file] });
  const as = async (token = ''): Promise<number> =>
    (
      await fetch(`${second.report.admin_url}/admin/v1/fleets`, {
        headers: { authorization: `Bearer ${token}` },
      })
    ).status;
  expect([await as(made[0]?.token), await as(made[1]?.token)]).toEqual([401, 200]);
  for (const { token } of made) expect(await isStored(second.report, token)).toBe(false);
  const found = (await auditEntries(second, `&fleet=${fleetId}`)).filter(({ route }) =>
    route.endsWith('/devices'),
  );
  const ended = found.filter(({ status }) => status === 201).map(({ about }) => about.device_id);
  expect(ended).toEqual(expect.arrayContaining(answered));
  const { body } = await second.admin<{ items: { device_id: string }[] }>(
    'GET',
    `/fleets/${fleetId}/devices?limit=1000`,
  );
  // Each device that there is was asked for in an entry: with its id, or one whose outcome nobody lived to know.
  const unended = found.filter(({ status }) => status === null).length;
  const unnamed = body.items.filter(({ device_id }) => !ended.includes(device_id)).length;
  expect(unnamed).toBeLessThanOrEqual(unended);
  expect(unended).toBeLessThanOrEqual(8);
  writeFileSync(file, JSON.stringify({ auditEntriesMax: 100 }));
  second.process.kill('SIGHUP');
  await until(async () => (await auditEntries(second))[0]?.method === 'SIGHUP');
  const device = (await second.admin<{ device_id: string }>('POST', `/fleets/${fleetId}/devices`, {})).body
    .device_id;
  for (let i = 0; i < 3; i += 1) {
    const mails = Array.from({ length: 50 }, () =>
      second.admin('POST', `/fleets/${fleetId}/devices/${device}/mail/a`, {}),
    );
    await Promise.all(mails);
  }
  for (let i = 0; i < 5; i += 1) await second.admin('POST', `/fleets/${fleetId}/devices`, {});
  const kept = await auditEntries(second);
  const count = (of: string): number => kept.filter(({ book }) => book === of).length;
  expect([count('change'), count('traffic')]).toEqual([100, 100]);
  expect(kept[0]).toMatchObject({ method: 'POST', status: 201 });
  expect(second.stderr).toBe('');
  await second.stop();
  if (engine !== 'lmdb') return;
  expect((await fleetpost(['verify', '--data', data])).stdout).toContain('OK, no problems found.');
});

it('no fleet pushes out of the audit log what another did, and no token makes more than so many changes a second', async () => {
  const data = temporaryFolder();
  await using first = await TestServer.start({ auditEntriesMax: 100, tokenChangesPerSecondMax: 2 }, data);
  const [loud, quiet] = [await createFleet(first), await createFleet(first)];
  const tokenOf = async (fleet_id: string): Promise<string> => {
    const body = { name: 'own', scopes: ['admin'], fleet_id };
    return (await first.admin<{ token: string }>('POST', '/tokens', body)).body.token;
  };
  const ask = (to: TestServer, token: string, fleetId: string, path = '') =>
    fetch(`${to.report.admin_url}/admin/v1/fleets/${fleetId}${path}`, {
      method: path === '' ? 'PATCH' : 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"name":"renamed"}',
    });
  const [loudToken, quietToken] = [await tokenOf(loud.fleetId), await tokenOf(quiet.fleetId)];
  for (let n = 0; n < 15; n += 1) expect((await ask(first, quietToken, quiet.fleetId)).status).toBe(200);
  // Twenty at once, and two more each second.
  const answers = await Promise.all(Array.from({ length: 60 }, () => ask(first, loudToken, loud.fleetId)));
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(20);
  const refused = answers.find(({ status }) => status === 429);
  expect(refused?.headers.get('retry-after')).toBe('1');
  const told = { error: 'rate_limited', msg: expect.stringContaining('tokenChangesPerSecondMax') };
  expect(await refused?.json()).toMatchObject(told);
  // Another token is not slowed, and mail is no change.
  expect((await ask(first, quietToken, quiet.fleetId)).status).toBe(200);
  const { deviceId } = await loud.createDevice();
  const mails = Array.from({ length: 120 }, () =>
    ask(first, loudToken, loud.fleetId, `/devices/${deviceId}/mail/go`),
  );
  expect((await Promise.all(mails)).every(({ status }) => status === 201)).toBe(true);
  await first.stop();

  await using second = await TestServer.start({ auditEntriesMax: 100, tokenChangesPerSecondMax: 0 }, data);
  const changes = async (): Promise<AuditEntryDocument[]> =>
    (await auditEntries(second)).filter(({ book }) => book === 'change');
  for (let n = 0; n < 10; n += 1) {
    await Promise.all(Array.from({ length: 20 }, () => ask(second, loudToken, loud.fleetId)));
  }
  await expect.poll(async () => (await changes()).length).toBe(100);
  const kept = await changes();
  const ofQuiet = kept.filter(({ method, about }) => method === 'PATCH' && about.fleet_id === quiet.fleetId);
  expect(ofQuiet).toHaveLength(16);
  expect(kept.filter(({ method }) => method === 'START').length).toBeGreaterThan(0);
  await second.stop();
  if (engine === 'lmdb')
    expect((await fleetpost(['verify', '--data', data])).stdout).toContain('OK, no problems found.');
});
