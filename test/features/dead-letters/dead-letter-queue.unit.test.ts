import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { generateUuid } from '../../../src/core/uuid.ts';
import type { StoredRecord } from '../../../src/domain/records/record.ts';
import {
  ActionDeadLetters,
  actionDeadLetterTable,
  type RefusedMail,
  type StoredActionDeadLetter,
} from '../../../src/features/actions/outbox/dead-letters.ts';
import { decodeOutboxEntry, encodeOutboxEntry } from '../../../src/features/actions/outbox/outbox-entry.ts';
import { ForwarderDeadLetters } from '../../../src/features/forwarders/forwarder-dead-letters.ts';
import { openControl, openJournal } from '../../../src/maintenance/environments.ts';
import { pack } from '../../../src/storage/tables/codec.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const limits = { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 0 };
const mebibyte = 1024 ** 2;
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
  const letters = new ForwarderDeadLetters(control, { letters: 4, bytes: mebibyte });
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
  expect(new ForwarderDeadLetters(control, { letters: 4, bytes: mebibyte }).hasRoomFor(forwarder, one)).toBe(
    false,
  );
  expect(await letters.drop(forwarder, records[0]?.id)).toBe(1);
  expect(await letters.add(forwarder, recordOf(other), 'status 422')).toBe('stored');
  expect(await letters.drop(forwarder)).toBe(3);
  expect(letters.count(forwarder)).toBe(0);
});

it('a letter that is replayed goes once it is accepted, unless it was refused or replayed again meanwhile', async () => {
  const letters = new ForwarderDeadLetters(control, { letters: 10, bytes: mebibyte });
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
  const letters = new ActionDeadLetters(actions, () => ({ letters: 10, bytes: mebibyte }));
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
  const letters = new ActionDeadLetters(actions, () => ({ letters: 2, bytes: mebibyte }));
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

/** A letter of a run that sent one payload to many devices. */
const sentToMany = (device: DeviceKey, { mails = 20, bytes = 2_000 } = {}): StoredActionDeadLetter => {
  const payload = Buffer.alloc(bytes, 'x');
  const refused = (ordinal: number): RefusedMail => ({
    device: other,
    name: 'opened',
    payload,
    ordinal,
    reason: 'device_not_found',
  });
  return { ...letterOf(device), mails: Array.from({ length: mails }, (_, ordinal) => refused(ordinal)) };
};

it('a payload that a run sent to many devices is stored once, in a letter and in the outbox', async () => {
  const letters = new ActionDeadLetters(actions, () => ({ letters: 10, bytes: mebibyte }));
  const action = generateUuid();
  const letter = sentToMany(one);
  await actions.commit(() => letters.put(action, 1, letter));
  actions.refresh();
  const [row] = [...actions.tables.deadLetters.entries({ start: action, limit: 1 })];
  expect(row?.value.length).toBeLessThan(6_000);
  expect(letters.get(action, 1)).toEqual(letter);
  const entry = { action, run: 1, record: letter.record, mails: letter.mails };
  const stored = encodeOutboxEntry(entry);
  expect(stored.length).toBeLessThan(6_000);
  expect(decodeOutboxEntry(stored)).toEqual(entry);
});

it('letters and outbox entries of before, with a payload for each mail, are read and counted', async () => {
  const action = generateUuid();
  const letter = sentToMany(one, { mails: 3, bytes: 10 });
  const key = actionDeadLetterTable.key.encode([action, 1]);
  await actions.commit(() => actions.tables.deadLetters.put(key, pack(letter)));
  const letters = new ActionDeadLetters(actions, () => ({ letters: 2, bytes: mebibyte }));
  expect(letters.get(action, 1)).toEqual(letter);
  expect([one, other].map((device) => letters.hasRoomFor(action, device))).toEqual([false, true]);
  const { mails } = decodeOutboxEntry(pack({ action, run: 1, record: letter.record, mails: letter.mails }));
  expect(mails).toEqual(letter.mails);
  expect(new Set(mails.map(({ payload }) => payload)).size).toBe(1);
  expect(await letters.drop(action)).toBe(1);
});

it('dead letters are bounded by their bytes too, of which each device has its share', async () => {
  const limits = { letters: 1_000, bytes: 400_000 };
  const letters = new ActionDeadLetters(actions, () => limits);
  const action = generateUuid();
  const put = (number: number, device: DeviceKey) =>
    actions.commit(() => letters.put(action, number, sentToMany(device, { mails: 10, bytes: 100_000 })));
  const room = () => [one, other].map((device) => letters.hasRoomFor(action, device));
  await put(1, one);
  expect([letters.isFull(action), room()]).toEqual([false, [true, true]]);
  await put(2, one);
  expect([letters.isFull(action), room()]).toEqual([false, [false, true]]);
  await put(3, other);
  await put(4, other);
  expect([letters.isFull(action), room()]).toEqual([true, [false, false]]);
  // As another start counts them.
  expect(new ActionDeadLetters(actions, () => limits).isFull(action)).toBe(true);
  // Replaced by a small one, which counts instead.
  await actions.commit(() => letters.put(action, 1, letterOf(one)));
  expect(letters.isFull(action)).toBe(false);
  await letters.drop(action, 2);
  expect(room()).toEqual([true, false]);
});

it('a page of large letters ends early, and the next goes on', async () => {
  const letters = new ActionDeadLetters(actions, () => ({ letters: 10, bytes: mebibyte }));
  const action = generateUuid();
  await actions.commit(() => {
    for (const number of [1, 2, 3]) {
      letters.put(action, number, sentToMany(one, { mails: 1, bytes: 100_000 }));
    }
    letters.put(action, 4, sentToMany(one, { mails: 1, bytes: mebibyte }));
  });
  const page = (after?: number) => {
    const { items, next } = letters.list(action, { limit: 10, ...(after !== undefined && { after }) });
    return [items.map(([number]) => number), next];
  };
  expect(page()).toEqual([[4], 4]);
  expect(page(4)).toEqual([[3, 2], 2]);
  expect(page(2)).toEqual([[1], null]);
});
