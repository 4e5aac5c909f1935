import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { listDevices } from '../../../../src/admin-api/routes/device-list.ts';
import { yieldToEventLoop } from '../../../../src/core/async.ts';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../../../src/core/identity.ts';
import type { Device } from '../../../../src/domain/devices/device.ts';
import { undescribed } from '../../../../src/domain/devices/device-fields.ts';
import type { DeviceFilter } from '../../../../src/domain/devices/device-query.ts';
import { shardOf } from '../../../../src/domain/placement.ts';
import { changeIndexes, countDevices, indexedOf } from '../../../../src/storage/lmdb/devices/device-index.ts';
import { changeSeen } from '../../../../src/storage/lmdb/devices/seen-index.ts';
import { digestOfTag } from '../../../../src/storage/lmdb/devices/tag-index.ts';
import type { Environment } from '../../../../src/storage/lmdb/environment/environment.ts';
import { decodeSeen } from '../../../../src/storage/lmdb/layout/activity-record.ts';
import { keyOfDevice, keyOfTag, readDevice } from '../../../../src/storage/lmdb/layout/keys.ts';
import { openTables } from '../../../../src/storage/lmdb/layout/tables.ts';
import { openShard } from '../../../harness/storage/shard.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const opened = [0, 1, 2, 3].map((index) => openShard(join(folder, String(index))));
/** Environments of three shards, and of one. */
const layouts = [opened.slice(0, 3), opened.slice(3)];
const { shard, environment } = opened[3] as (typeof opened)[number];
afterAll(async () => {
  for (const one of opened) await one.close();
  rmSync(folder, { recursive: true });
});

const fleets = ['FLEET001', 'FLEET002'];
const tags = ['hall', 'door', 'Öl', '🚪', 'hall '];
const names = [
  '',
  'a',
  'Ab',
  'Ab ',
  'Abc',
  'Öl',
  'x'.repeat(31),
  `${'x'.repeat(31)}Ö1`,
  `${'x'.repeat(31)}Ö2`,
];
const hourMs = 3_600_000;
const deviceOf = (device: DeviceKey, rest: Partial<Device> = {}): Device => ({
  device,
  enabled: true,
  secretDigests: [Buffer.alloc(32)],
  ...undescribed,
  createdAtMs: 0,
  ...rest,
});

const indexTables = ['tags', 'names', 'seen', 'counts'];
function dump(environment: Environment): string[] {
  return indexTables.flatMap((name) =>
    [...environment.table(name).getRange({})].map(
      ({ key, value }) => `${name} ${key.toString('hex')} ${value.toString('hex')}`,
    ),
  );
}

/** Builds the indexes from the devices alone, as these are now. */
function indexAnew(environment: Environment): void {
  const tables = openTables(environment);
  environment.writeSync(() => {
    for (const name of indexTables) environment.table(name).clearSync();
    for (const { key, value } of tables.devices.getRange({})) {
      const device = readDevice(key, 0);
      const seen = tables.activity.getBinary(key);
      changeIndexes(tables, device, undefined, indexedOf(value));
      changeSeen(tables.seen, device, null, seen && decodeSeen(seen).lastSeenMs);
    }
  });
}

/** All pages of a list. */
async function allFound(
  shards: (typeof opened)[number][],
  filter: DeviceFilter,
  limit: number,
): Promise<string[]> {
  const found: string[] = [];
  let after = '';
  for (;;) {
    const page = await listDevices(
      shards.map((one) => one.shard),
      filter,
      after,
      limit,
      yieldToEventLoop,
    );
    expect(page.items.length).toBeLessThanOrEqual(limit);
    found.push(...page.items.map(({ device }) => deviceIdOf(device)));
    if (page.next === null) return found;
    after = page.next;
  }
}

type Known = Pick<Device, 'name' | 'tags' | 'enabled'> & { seenMs: number | undefined };

function fits(device: DeviceKey, known: Known, filter: DeviceFilter): boolean {
  const { tags: asked = [], idPrefix = '', namePrefix = '', enabled, seenAfterMs, seenBeforeMs } = filter;
  return (
    asked.every((tag) => known.tags.includes(tag)) &&
    deviceIdOf(device).startsWith(idPrefix) &&
    known.name.toLowerCase().startsWith(namePrefix.toLowerCase()) &&
    (enabled === undefined || known.enabled === enabled) &&
    (seenAfterMs === undefined || (known.seenMs !== undefined && known.seenMs >= seenAfterMs)) &&
    (seenBeforeMs === undefined || known.seenMs === undefined || known.seenMs < seenBeforeMs)
  );
}

const seenTime = fc.integer({ min: 1, max: 30 }).map((sixths) => (sixths * hourMs) / 12 + sixths);
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const operation = fc.record({
  type: fc.constantFrom('create', 'create', 'change', 'change', 'see', 'see', 'delete'),
  device: fc.tuple(fc.constantFrom(...fleets), fc.integer({ min: 0, max: 9 })),
  rest: fc.record({
    tags: fc.array(fc.constantFrom(...tags), { maxLength: 4 }),
    name: fc.constantFrom(...names),
    enabled: fc.boolean(),
  }),
  seenMs: seenTime,
});
const filters = fc.record({
  fleetId: fc.constantFrom(...fleets),
  tags: maybe(fc.array(fc.constantFrom(...tags), { minLength: 1, maxLength: 3 })),
  idPrefix: maybe(fc.constantFrom('', 'D', 'DEVICE000', 'DEVICE0003', 'X')),
  namePrefix: maybe(fc.constantFrom('a', 'aB', 'A', 'Ab', 'Abc', 'x', 'Ö', ...names)),
  enabled: maybe(fc.boolean()),
  seenAfterMs: maybe(seenTime),
  seenBeforeMs: maybe(seenTime),
});

it('a list has the devices that fit and no others, whatever is done to devices, in one shard and in three', async () => {
  const models = layouts.map(() => new Map<DeviceKey, Known>());
  await fc.assert(
    fc.asyncProperty(
      fc.array(operation, { minLength: 1, maxLength: 30 }),
      fc.array(filters, { minLength: 8, maxLength: 8 }),
      fc.integer({ min: 1, max: 4 }),
      async (operations, asked, limit) => {
        for (const [which, shards] of layouts.entries()) {
          const model = models[which] as Map<DeviceKey, Known>;
          for (const { type, device: id, rest, seenMs } of operations) {
            const device = deviceKeyOf(id[0], `DEVICE000${id[1]}`);
            const { shard } = shards[shardOf(device, shards.length)] as (typeof opened)[number];
            const known = model.get(device);
            if (type === 'create') {
              const taken = await shard.devices.create([deviceOf(device, rest)]);
              expect(taken).toBe(known && device);
              if (known === undefined) model.set(device, { ...rest, seenMs: undefined });
            } else if (type === 'delete') {
              expect(await shard.devices.delete(device)).toBe(model.delete(device));
            } else if (type === 'change') {
              expect(await shard.devices.change(device, rest)).toBe(known !== undefined);
              if (known) model.set(device, { ...rest, seenMs: known.seenMs });
            } else {
              await shard.devices.noteActivity([
                { device, lastSeenMs: seenMs, address: undefined, fetches: [] },
              ]);
              if (known) known.seenMs = seenMs;
            }
          }
          for (const filter of asked) {
            const own = [...model].filter(([device]) => device.startsWith(filter.fleetId));
            const expected = own.filter(([device, known]) => fits(device, known, filter));
            expect((await allFound(shards, filter, limit)).sort()).toEqual(
              expected.map(([device]) => deviceIdOf(device)).sort(),
            );
            const counts = await Promise.all(
              shards.map(({ shard }) => shard.devices.fleetCounts(filter.fleetId)),
            );
            expect([
              counts.reduce((sum, { devices }) => sum + devices, 0),
              counts.reduce((sum, { disabled }) => sum + disabled, 0),
            ]).toEqual([own.length, own.filter(([, { enabled }]) => !enabled).length]);
          }
        }
      },
    ),
    { numRuns: 15 },
  );
  for (const { environment } of opened) {
    const kept = dump(environment);
    countDevices(environment);
    expect(dump(environment)).toEqual(kept);
    indexAnew(environment);
    expect(dump(environment)).toEqual(kept);
  }
});

it('a page looks at a bounded number of devices and says where to go on', async () => {
  const made = Array.from({ length: 22_000 }, (_, n) =>
    deviceOf(deviceKeyOf('FLEET006', `D${String(n).padStart(9, '0')}`), { enabled: n === 21_999 }),
  );
  await shard.devices.create(made);
  const filter = { fleetId: 'FLEET006', enabled: true };
  const first = await listDevices([shard], filter, '', 10, yieldToEventLoop);
  expect(first.items).toEqual([]);
  const { items, next } = await listDevices([shard], filter, first.next ?? '', 10, yieldToEventLoop);
  expect([items.length, next]).toEqual([1, null]);
  const wrong = listDevices([shard], filter, 't.AAAA', 10, yieldToEventLoop);
  await expect(wrong).rejects.toMatchObject({ code: 'bad_request' });
});

it('a device of another tag with the same digest is not answered', async () => {
  const one = deviceKeyOf('FLEET004', 'DEVICE0001');
  const two = deviceKeyOf('FLEET004', 'DEVICE0002');
  await shard.devices.create([deviceOf(one, { tags: ['hall'] }), deviceOf(two, { tags: ['hall'] })]);
  await environment.write(() => {
    for (const device of [one, two]) {
      environment.table('tags').putSync(keyOfTag(digestOfTag('attic'), device), Buffer.alloc(0));
    }
  });
  expect(await shard.devices.idsWithTag('FLEET004', 'attic', '', 10)).toEqual([]);
  expect(await shard.devices.idsWithTag('FLEET004', 'hall', '', 10)).toEqual(['DEVICE0001', 'DEVICE0002']);
});

it('a device whose record is damaged is not answered, and the others that have the tag are', async () => {
  const ids = ['DEVICE0001', 'DEVICE0002', 'DEVICE0003'];
  const [first, damaged, last] = ids as [string, string, string];
  await shard.devices.create(ids.map((id) => deviceOf(deviceKeyOf('FLEET005', id), { tags: ['hall'] })));
  const key = keyOfDevice(deviceKeyOf('FLEET005', damaged));
  await environment.write(() => environment.table('devices').putSync(key, Buffer.of(1)));
  expect(await shard.devices.idsWithTag('FLEET005', 'hall', '', 10)).toEqual([first, last]);
  expect(await allFound(layouts[1] ?? [], { fleetId: 'FLEET005' }, 10)).toEqual([first, last]);
  expect(await shard.devices.delete(deviceKeyOf('FLEET005', damaged))).toBe(true);
});
