import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { AuditEntryDocument } from '../../../src/contract/access/audit.ts';
import type { FleetDocument } from '../../../src/contract/fleet.ts';
import type { ServerDocument } from '../../../src/contract/server.ts';
import { createFleet } from '../../harness/devices/device.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { until } from '../../harness/server/vitals.ts';

it('the configuration in use is shown with the source of each value, also after SIGHUP', async () => {
  const file = join(temporaryFolder(), 'fleetpost.json');
  const write = (values: object): void => writeFileSync(file, JSON.stringify(values));
  write({ mailboxMailsMax: 77, traceUrl: 'http://me:hidden@127.0.0.1:9/v1/traces' });
  await using server = await TestServer.start({}, temporaryFolder(), {
    flags: ['--config', file],
    environment: { FLEETPOST_ACTIVE_SECONDS: '99' },
  });
  const shown = async (): Promise<ServerDocument> =>
    (await server.admin<ServerDocument>('GET', '/server')).body;
  const keyOf = async (name: string) => (await shown()).configuration.find(({ key }) => key === name);
  expect(await keyOf('mailboxMailsMax')).toMatchObject({ value: 77, source: 'file', reloadable: true });
  expect(await keyOf('activeSeconds')).toMatchObject({
    value: 99,
    source: 'environment',
    environment: 'FLEETPOST_ACTIVE_SECONDS',
  });
  expect(await keyOf('drainSeconds')).toMatchObject({ source: 'default' });
  expect(await keyOf('store')).toMatchObject({ reloadable: false, pending: false });
  expect((await shown()).certificates.map(({ listener }) => listener)).toContain('device API');
  expect(Date.parse((await shown()).certificates[0]?.expires_at ?? '')).toBeGreaterThan(Date.now());
  expect(JSON.stringify(await shown())).not.toContain('hidden');
  const people = await fleetpost(['status', '--data', server.report.data]);
  expect(people.stdout).toMatch(/mailboxMailsMax +77 +file/);
  expect(people.stdout).not.toContain('hidden');
  expect(people.stdout).not.toContain('drainSeconds');
  write({ mailboxMailsMax: 78, strictStatuses: true });
  server.process.kill('SIGHUP');
  await until(async () => (await keyOf('mailboxMailsMax'))?.value === 78);
  expect(await keyOf('strictStatuses')).toMatchObject({ value: false, source: 'default', pending: true });
  const tokens = await server.admin<{ token: string }>('POST', '/tokens', { name: 'r', scopes: ['read'] });
  const refused = await fetch(`${server.report.admin_url}/admin/v1/server`, {
    headers: { authorization: `Bearer ${tokens.body.token}` },
  });
  expect(refused.status).toBe(403);
});

it('a fleet says which of its limits are its own', async () => {
  const server = await TestServer.shared();
  const { fleetId } = await createFleet(server, { mail_ttl_seconds: 60 });
  const path = `/fleets/${fleetId}`;
  const own = async (): Promise<string[]> => (await server.admin<FleetDocument>('GET', path)).body.own;
  expect(await own()).toEqual(['mail_ttl_seconds']);
  await server.admin('PATCH', path, { mail_ttl_seconds: null, log_bytes_max: 1_000_000, name: 'x' });
  expect(await own()).toEqual(['log_bytes_max']);
});

it('the audit log is filtered by what an entry is about, and by its book', async () => {
  const server = await TestServer.shared();
  const fleet = await createFleet(server);
  const [one, other] = [await fleet.createDevice(), await fleet.createDevice()];
  await server.admin('PATCH', one.adminPath, { name: 'changed' });
  await server.admin('PATCH', other.adminPath, { name: 'changed' });
  await one.sendMail();
  const entries = async (query: string): Promise<string[]> => {
    const { body } = await server.admin<{ items: AuditEntryDocument[] }>(
      'GET',
      `/audit?fleet=${fleet.fleetId}&${query}`,
    );
    return body.items.map(({ method, about }) => `${method} ${about.device_id}`);
  };
  expect(await entries(`about=${one.deviceId}&book=change`)).toEqual([
    `PATCH ${one.deviceId}`,
    `POST ${one.deviceId}`,
  ]);
  expect(await entries(`about=${one.deviceId}&book=traffic`)).toEqual([`POST ${one.deviceId}`]);
  const args = ['audit', 'list', '--about', other.deviceId, '--book', 'change', '--data', server.report.data];
  const listed = await fleetpost(args);
  expect(listed.stdout.split('\n').filter((line) => line.includes('PATCH'))).toHaveLength(1);
  expect((await server.admin('GET', '/audit?book=other')).status).toBe(400);
});
