import { rmSync } from 'node:fs';
import { uuidv7 } from 'uuidv7';
import { expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import type { EnqueueOutcome } from '../../../src/domain/mail/mail.ts';
import { shardOf } from '../../../src/domain/placement.ts';
import { DeviceVersions, versionsBytes } from '../../../src/storage/lmdb/devices/device-versions.ts';
import { createFleet, TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { type ServerReport, shards, TestServer, temporaryFolder } from '../../harness/server/server.ts';
import { eachShard, readRecords } from '../../harness/storage/log.ts';
import { openReadingShard } from '../../harness/storage/reading-shard.ts';
import { openState, readShardRecords } from '../shard-records.ts';

const devicesCount = 12;
/** Up, down, and up again onto numbers that there were before. */
const counts = [shards + 2, 2, shards + 3];

/** Facts that one device has been promised. */
interface Known {
  device: TestDevice;
  disabled: boolean;
  /** In mailbox order. */
  mailIds: string[];
  acked: string;
  keys: { key: string; payload: string }[];
  sent: string[];
}

async function send(known: Known, server: TestServer): Promise<void> {
  const key = uuidv7();
  const payload = `{"n":${known.sent.length}, "of":"${known.device.deviceId}"}`;
  const headers = { 'Idempotency-Key': key };
  const answer = await known.device.on(server).request('POST', '/v1/datapoint/reading', payload, headers);
  expect(answer.status).toBe(201);
  known.keys.push({ key, payload });
  known.sent.push(payload);
}

/** Five mails, of which one is requeued and one acknowledged; on every third device none is left. */
async function createKnown(fleet: TestFleet, index: number): Promise<Known> {
  const { server } = fleet;
  const device = await fleet.createDevice({ name: `Device ${index}`, tags: ['moved'] });
  const ids: string[] = [];
  for (let mail = 0; mail < 5; mail += 1) {
    ids.push((await device.sendMail('note', `{"mail": ${mail}}`)).mailId);
  }
  const [first = '', acked = '', ...rest] = ids;
  expect((await device.settle('requeue', first)).status).toBe(200);
  expect((await device.settle('ack', acked)).status).toBe(200);
  const mailIds = [...rest, first];
  if (index % 3 === 0) for (const id of mailIds.splice(0)) await device.settle('reject', id);
  const known: Known = { device, disabled: false, mailIds, acked, keys: [], sent: [] };
  await send(known, server);
  return known;
}

async function expectKnown(known: Known, server: TestServer): Promise<void> {
  const device = known.device.on(server);
  const status = await server.admin('GET', device.adminPath);
  expect(status.body).toMatchObject({
    tags: ['moved'],
    enabled: !known.disabled,
    mailbox_size: known.mailIds.length,
    last_seen: expect.stringMatching(/^20/),
  });
  const { body } = await server.admin<{ items: { mail_id: string }[] }>('GET', `${device.adminPath}/mail`);
  expect(body.items.map(({ mail_id }) => mail_id)).toEqual(known.mailIds);
  if (known.disabled) {
    expect((await device.heartbeat()).json).toMatchObject({ detail: 'device_disabled' });
    return;
  }
  const stranger = new TestDevice(server, device.fleetId, device.deviceId, `FOS-${'x'.repeat(32)}`);
  expect((await stranger.heartbeat()).status).toBe(401);
  const head = await device.next();
  expect(head.headers.get('x-mail-id')).toBe(known.mailIds[0] ?? '');
  expect(head.headers.get('x-mailbox-size')).toBe(String(known.mailIds.length));
  expect((await device.settle('ack', known.acked)).status).toBe(200);
  expect((await device.settle('reject', known.acked)).status).toBe(409);
  for (const { key, payload } of known.keys) {
    const headers = { 'Idempotency-Key': key };
    const replay = await device.request('POST', '/v1/datapoint/reading', payload, headers);
    expect([replay.status, replay.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
  }
}

/** Answers of the owner of each device's shard to a mail that was perhaps sent for the same before. */
async function sendOnce(
  report: ServerReport,
  devices: readonly DeviceKey[],
  dedupeKeys: readonly Uint8Array[],
): Promise<string[]> {
  const answers: string[] = [];
  let shard = 0;
  await eachShard(report, async (environment) => {
    const own = shard++;
    const state = openState(environment);
    await environment.write(() => {
      for (const [index, device] of devices.entries()) {
        if (shardOf(device, report.shards) !== own) continue;
        const mail = {
          name: 'note',
          payload: Buffer.from('{}'),
          ttlSeconds: 86_400,
          mailboxMailsMax: 1_000,
        };
        const params = { device, ...mail, dedupeKey: dedupeKeys[index] as Uint8Array };
        const answer = state.apply({ type: 'enqueue', params }) as EnqueueOutcome;
        if (answer.result !== 'queued') throw new Error(answer.result);
        answers[index] = answer.repeated ? 'repeated' : formatUuid(answer.mailId);
      }
      state.flush();
    });
  });
  return answers;
}

async function withTag(report: ServerReport, fleetId: string, tag: string): Promise<string[]> {
  const found: string[] = [];
  await eachShard(report, (environment) => {
    const versions = new DeviceVersions(new Int32Array(new SharedArrayBuffer(versionsBytes)));
    found.push(...openReadingShard(environment, versions).devices.idsWithTag(fleetId, tag, '', 1_000));
  });
  return found.sort();
}

async function goOn(known: Known, server: TestServer): Promise<void> {
  await send(known, server);
  const acked = known.mailIds.shift();
  if (acked === undefined) return;
  expect((await known.device.on(server).settle('ack', acked)).status).toBe(200);
  known.acked = acked;
  known.mailIds.push((await known.device.on(server).sendMail('note', '{"later":true}')).mailId);
}

it('a start with another shard count moves every device with all that is its own, there and back', async () => {
  const data = temporaryFolder();
  let server = await TestServer.start({}, data);
  const fleet = await createFleet(server);
  const all = await Promise.all(
    Array.from({ length: devicesCount }, (_, index) => createKnown(fleet, index)),
  );
  const [disabled] = all as [Known];
  disabled.disabled = true;
  await server.admin('PATCH', disabled.device.adminPath, { enabled: false });
  const keys = all.map(({ device }) => deviceKeyOf(device.fleetId, device.deviceId));
  const dedupeKeys = keys.map(() => new Uint8Array([...generateUuid(), 1]));
  for (const [index, count] of counts.entries()) {
    expect(await server.stop()).toBe(0);
    const sent = await sendOnce(server.report, keys, dedupeKeys);
    if (index > 0) expect(sent).toEqual(all.map(() => 'repeated'));
    else for (const [which, id] of sent.entries()) all[which]?.mailIds.push(id);
    server = await TestServer.start({ shards: count }, data);
    expect(server.report.shards).toBe(count);
    expect(server.stderr).toMatch(new RegExp(`^Moved \\d+ devices from \\d+ to ${count} shards in`, 'm'));
    await Promise.all(all.map((known) => expectKnown(known, server)));
    // Life goes on: what comes now has to follow at the next move.
    await Promise.all(all.slice(1).map((known) => goOn(known, server)));
  }
  await server.stop();
  expect(await sendOnce(server.report, keys, dedupeKeys)).toEqual(all.map(() => 'repeated'));
  expect(await withTag(server.report, fleet.fleetId, 'moved')).toEqual(
    all.map(({ device }) => device.deviceId).sort(),
  );
  expect(await readShardRecords(server.report)).toMatchObject({ misplaced: [], disordered: [] });
  const stored = await readRecords(server.report);
  for (const { device, sent } of all) {
    const own = stored.filter(({ deviceId }) => deviceId === device.deviceId);
    expect(own.map(({ payload }) => payload)).toEqual(sent);
  }
  rmSync(data, { recursive: true });
});
