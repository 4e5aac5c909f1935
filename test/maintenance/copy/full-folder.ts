import { expect, vi } from 'vitest';
import type { DeviceKey } from '../../../src/core/identity.ts';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { Broadcasts } from '../../harness/features/broadcast.ts';
import { type ServerReport, TestServer } from '../../harness/server/server.ts';
import { eachShard } from '../../harness/storage/log.ts';
import { fillShards, openState } from '../shard-records.ts';

const patience = { timeout: 60_000, interval: 20 };
const devicesCount = 8;
/** A webhook that nobody listens at. */
const nobody = 'http://127.0.0.1:9/in';

/** A data folder whose server has ended, with something of everything in it. */
export interface FullFolder {
  fleet: TestFleet;
  /** One of them is disabled, and the secret of one is being replaced. */
  devices: TestDevice[];
  disabled: TestDevice;
  /** Ids of records that the consumer `billing` has acknowledged. */
  acknowledged: Set<string>;
  /** Dead letters of the action `relay`. */
  deadLetters: number;
}

/** A run that fails once is a dead letter. */
export const fullConfig = { actionAttemptsMax: 1, forwardHosts: '127.0.0.1' };

/** A real server makes it, by its own interfaces, but for what takes a second server: mail that was sent for something. */
export async function fillFolder(data: string, shards: number): Promise<FullFolder> {
  await using server = await TestServer.start({ ...fullConfig, shards }, data);
  const fleet = await createFleet(server, { name: 'Hall', log_retention_seconds: 86_400 });
  const at = `/fleets/${fleet.fleetId}`;
  await fleet.putSchema('message', 'opened', anyObject);
  const devices: TestDevice[] = [];
  for (let index = 0; index < devicesCount; index += 1) {
    devices.push(
      await fleet.createDevice({ name: `Sensor ${index}`, tags: ['hall', `row ${index % 3}`, 'Ä€😀'] }),
    );
  }
  const [, second, third] = devices as [TestDevice, TestDevice, TestDevice];
  const ask = async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const answer = await server.admin(method, path, body);
    expect(answer.status, `${method} ${path} ${JSON.stringify(answer.body)}`).toBeLessThan(300);
    return answer.body;
  };
  await ask('PUT', `${at}/consumers/billing`, {});
  await ask('PUT', `${at}/forwarders/hook`, { type: 'webhook', url: nobody });
  await ask('POST', '/tokens', { name: 'reader', scopes: ['read'] });
  await ask('POST', `${at}/claim-tokens`, { name: 'line 1', tags: ['claimed'], devices_max: 5 });
  const source = `export default async (record, fleet) => {
    fleet.state.set('last', record.payload);
    if (record.payload.n % 2 === 1) throw new Error('odd');
    fleet.send('${second.deviceId}', 'relayed', record.payload);
  };`;
  await ask('PUT', `${at}/actions/relay`, {
    source,
    language: 'javascript',
    on: [{ kind: 'message', schema: 'opened' }],
  });

  for (const [index, device] of devices.entries()) {
    for (let n = 0; n < 4; n += 1) {
      const key = { 'Idempotency-Key': formatUuid(generateUuid()) };
      expect((await device.request('POST', '/v1/datapoint/reading', { n }, key)).status).toBe(201);
    }
    expect((await device.request('POST', '/v1/msg/opened', { n: index })).status).toBe(201);
    for (const name of ['one', 'two', 'three', 'four']) await device.sendMail(name, `{"of":${index}}`);
    // A letter of a device that is deleted goes, sooner or later.
    const isDeleted = index === devicesCount - 1;
    for (const verb of isDeleted ? (['ack'] as const) : (['ack', 'reject', 'requeue'] as const)) {
      const mailId = String((await device.next()).headers.get('x-mail-id'));
      expect((await device.settle(verb, mailId)).status).toBe(200);
    }
    for (const name of ['set', 'set']) await device.sendMail(name, '{}', '?replace_key=set-point');
    const later = new Date(Date.now() + 7_200_000).toISOString();
    expect((await device.sendMail('later', '{}', `?deliver_at=${later}`)).status).toBeLessThan(300);
  }
  const broadcasts = new Broadcasts(fleet);
  const { broadcast_id: id } = await broadcasts.put({
    to: { tag: 'row 1' },
    name: 'all',
    payload: { now: true },
  });
  await broadcasts.done(id);
  await ask('PATCH', third.adminPath, { enabled: false });
  await ask('POST', `${second.adminPath}/rotate-secret`, { grace_seconds: 3_600 });
  await ask('DELETE', (devices.pop() as TestDevice).adminPath);
  let deadLetters = 0;
  await vi.waitFor(async () => {
    const { items } = (await ask('GET', `${at}/actions/relay/dead-letters`)) as { items: unknown[] };
    deadLetters = items.length;
    expect(deadLetters).toBe(devicesCount / 2);
  }, patience);

  const acknowledged = new Set<string>();
  type Batch = { batch_id: string; records: { record_id: string }[] };
  for (let batch = 0; batch < 3; batch += 1) {
    const { batch_id, records } = (await ask('POST', `${at}/consumers/billing/fetch`, {
      max: 5,
    })) as unknown as Batch;
    await ask('POST', `${at}/consumers/billing/acknowledge`, { batch_id });
    for (const { record_id } of records) acknowledged.add(record_id);
  }
  // An orderly end writes what is still in memory.
  await server.stop();
  await fillShards(server.report);
  await markBroadcast(server.report);
  return { fleet, devices, disabled: third, acknowledged, deadLetters };
}

/** Marks a broadcast as one that is under way leaves it. */
async function markBroadcast(report: ServerReport): Promise<void> {
  const broadcast = generateUuid();
  await eachShard(report, async (environment) => {
    const state = openState(environment);
    const devices = [...environment.table('devices').getKeys({})].map(
      (key) => key.toString('latin1') as DeviceKey,
    );
    const mail = { name: 'all', payload: Buffer.from('{}'), ttlSeconds: 86_400, mailboxMailsMax: 1_000 };
    await environment.write(() => {
      state.apply({ type: 'broadcast', params: { broadcast, devices, mail } });
      state.flush();
    });
  });
}
