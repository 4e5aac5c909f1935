import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { generateUuid } from '../../../src/core/uuid.ts';
import type { StoredRecord } from '../../../src/domain/records/record.ts';
import { ActionDeadLetters } from '../../../src/features/actions/outbox/dead-letters.ts';
import { ForwarderDeadLetters } from '../../../src/features/forwarders/forwarder-dead-letters.ts';
import { openControl, openJournal } from '../../../src/maintenance/environments.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const limits = { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 0 };
const control = openControl(join(folder, 'control'), limits);
const actions = openJournal(join(folder, 'actions'), limits);
afterAll(async () => {
  await control.close();
  await actions.close();
  rmSync(folder, { recursive: true });
});

const [one, other] = ['DEVICE0001', 'DEVICE0002'].map((id) => deviceKeyOf('FLEET001', id)) as [
  DeviceKey,
  DeviceKey,
];
const recordOf = (device: DeviceKey): StoredRecord => ({
  position: 0,
  id: generateUuid(),
  device,
  kind: 'message',
  schema: 'opened',
  payload: Buffer.from('{}'),
  storedAtMs: 0,
  isRelocated: false,
});
const letterOf = (device: DeviceKey) => ({
  record: recordOf(device),
  failedAtMs: 1,
  attempts: 1,
  error: { code: 'threw' as const, msg: '' },
  mails: [],
});

it('dead letters are listed page by page, and each device has its share of them', async () => {
  const letters = new ForwarderDeadLetters(control, 4);
  const forwarder = generateUuid();
  const records = [one, one, one, other, other].map(recordOf);
  const outcomes: string[] = [];
  for (const record of records) outcomes.push(await letters.add(forwarder, record, 'status 422'));
  expect(outcomes).toEqual(['stored', 'stored', 'share_full', 'stored', 'share_full']);
  // Refused again, it is there once.
  expect(await letters.add(forwarder, records[0] as StoredRecord, 'status 400')).toBe('stored');
  expect(letters.count(forwarder)).toBe(3);
  const first = letters.list(forwarder, { limit: 2 });
  expect(first.items.map(([id, { reason }]) => [id, reason])).toEqual([
    [records[0]?.id, 'status 400'],
    [records[1]?.id, 'status 422'],
  ]);
  expect(first.next).toEqual(records[1]?.id);
  const rest = letters.list(forwarder, { limit: 2, ...(first.next && { after: first.next }) });
  expect([rest.items.map(([, { record }]) => record), rest.next]).toEqual([[records[3]], null]);
  // As another start counts them.
  expect(new ForwarderDeadLetters(control, 4).hasRoomFor(forwarder, one)).toBe(false);
  expect(await letters.drop(forwarder, records[0]?.id)).toBe(1);
  expect(await letters.add(forwarder, recordOf(other), 'status 422')).toBe('stored');
  expect(await letters.drop(forwarder)).toBe(3);
  expect(letters.count(forwarder)).toBe(0);
});

it('a letter that is replayed goes once it is accepted, unless it was refused or replayed again meanwhile', async () => {
  const letters = new ForwarderDeadLetters(control, 10);
  const forwarder = generateUuid();
  for (const record of [one, one, one].map(recordOf)) await letters.add(forwarder, record, 'status 422');
  expect(await letters.replay(forwarder)).toBe(3);
  const queued = letters.replays(forwarder, 10);
  const [refused, again, accepted] = queued.map(({ record }) => record) as StoredRecord[];
  await letters.add(forwarder, refused as StoredRecord, 'status 422');
  expect(await letters.replay(forwarder, again?.id)).toBe(1);
  await letters.settle(forwarder, queued);
  expect(letters.ids(forwarder)).toEqual([refused?.id, again?.id]);
  expect(letters.ids(forwarder).map((id) => letters.isReplayed(forwarder, id))).toEqual([false, true]);
  expect(letters.get(forwarder, accepted?.id as Buffer)).toBeUndefined();
});

it('what a transaction that fails has put is not counted', async () => {
  const letters = new ActionDeadLetters(actions, () => 10);
  const action = generateUuid();
  const put = (number: number, fail: boolean) =>
    actions.commit(() => {
      letters.put(action, number, letterOf(one));
      if (fail) throw new Error('the disk is full');
    });
  await put(3, false);
  await expect(put(4, true)).rejects.toThrow();
  expect(letters.count(action)).toBe(1);
  await put(7, false);
  expect(letters.count(action)).toBe(2);
  expect(letters.list(action, { limit: 10 }).items.map(([number]) => number)).toEqual([7, 3]);
});

it('the room of a removed letter is given away only once that is durable', async () => {
  const letters = new ActionDeadLetters(actions, () => 2);
  const action = generateUuid();
  await actions.commit(() => {
    letters.put(action, 1, letterOf(one));
    letters.put(action, 2, letterOf(other));
  });
  expect(letters.isFull(action)).toBe(true);
  let isFullWithin: boolean | undefined;
  await actions.commit(() => {
    letters.remove(action, 1);
    isFullWithin = letters.isFull(action);
  });
  expect([isFullWithin, letters.isFull(action)]).toEqual([true, false]);
});
