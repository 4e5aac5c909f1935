/** Contract of `Shard`: searches of devices. */

import { describe, expect, it } from 'vitest';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../../src/core/identity.ts';
import type { Device } from '../../../src/domain/devices/device.ts';
import type {
  CountStep,
  DeviceFilter,
  DeviceIndex,
  DeviceQuery,
} from '../../../src/domain/devices/device-query.ts';
import { engines } from './engine.ts';
import { device, fleetId, namesake, newDevice, otherFleetId, type Store, useStore } from './store.ts';

const hourMs = 3_600_000;
const names = ['', 'a', 'Ab', 'Ab ', 'Abc', 'Öl', 'ab', '%_', `${'x'.repeat(31)}Ö1`, `${'x'.repeat(31)}Ö2`];
const tags = ['hall', 'door', 'Öl', '🚪', 'hall ', 'h'];

type Found = Pick<Device, 'device' | 'name' | 'tags' | 'enabled'> & { seenMs: number | undefined };

const idOf = (n: number): string => `DEVICE${String(n).padStart(4, '0')}`;

/** Devices with some of every mixture. */
const fleet: readonly Found[] = Array.from({ length: 60 }, (_, n) => ({
  device: deviceKeyOf(fleetId, idOf(n)),
  name: names[n % names.length] ?? '',
  tags: tags.filter((_, which) => (n * 7 + which * 5) % (which + 3) === 0),
  enabled: n % 4 !== 0,
  seenMs: n % 5 === 0 ? undefined : n * (hourMs / 12) + n,
}));

const filters: readonly Omit<DeviceFilter, 'fleetId'>[] = [
  {},
  ...tags.map((tag) => ({ tags: [tag] })),
  { tags: ['door', 'hall'] },
  { tags: ['hall', 'h', 'Öl'], enabled: true },
  { tags: ['hall', 'nothing'] },
  ...['A', 'Ab', 'Ab ', 'a', 'Ö', '%', '_', 'x', `${'x'.repeat(31)}Ö`, `${'x'.repeat(31)}Ö1`].map(
    (namePrefix) => ({ namePrefix }),
  ),
  { namePrefix: '' },
  ...['', idOf(0).slice(0, 9), idOf(7), '~', 'z'].map((idPrefix) => ({ idPrefix })),
  { idPrefix: idOf(10).slice(0, 9), tags: ['hall'] },
  { idPrefix: idOf(10).slice(0, 9), enabled: false, namePrefix: 'AB' },
  ...['AB', 'aB ', 'ö', `${'X'.repeat(31)}ö`].map((namePrefix) => ({ namePrefix })),
  { enabled: true },
  { enabled: false },
  { seenAfterMs: 20 * (hourMs / 12) + 20 },
  { seenBeforeMs: 21 * (hourMs / 12) + 21 },
  { seenAfterMs: 0 },
  { seenAfterMs: 11 * (hourMs / 12) + 12, seenBeforeMs: 41 * (hourMs / 12) + 41 },
  { tags: ['hall'], namePrefix: 'A', enabled: true },
  { tags: ['door'], enabled: false, seenBeforeMs: 30 * (hourMs / 12) },
  { tags: ['nothing'] },
  { namePrefix: 'nothing' },
];

function fits(
  known: Found,
  { tags: asked = [], idPrefix = '', namePrefix = '', enabled, seenAfterMs, seenBeforeMs }: DeviceFilter,
): boolean {
  const { seenMs } = known;
  return (
    asked.every((tag) => known.tags.includes(tag)) &&
    deviceIdOf(known.device).startsWith(idPrefix) &&
    known.name.toLowerCase().startsWith(namePrefix.toLowerCase()) &&
    (enabled === undefined || known.enabled === enabled) &&
    (seenAfterMs === undefined || (seenMs !== undefined && seenMs >= seenAfterMs)) &&
    (seenBeforeMs === undefined || seenMs === undefined || seenMs < seenBeforeMs)
  );
}

/** The indexes that a filter can be asked by: those that have every device it is about. */
function indexesFor({
  tags: asked,
  namePrefix = '',
  enabled,
  seenAfterMs,
  seenBeforeMs,
}: DeviceFilter): DeviceIndex[] {
  const indexes: DeviceIndex[] = ['id'];
  if (asked !== undefined) indexes.push('tag');
  if (namePrefix !== '') indexes.push('name');
  if (enabled === false) indexes.push('disabled');
  if (seenAfterMs !== undefined || seenBeforeMs !== undefined) indexes.push('seen');
  return indexes;
}

/** All steps of a search. */
async function search(store: Store, query: Omit<DeviceQuery, 'after'>): Promise<string[]> {
  const found: string[] = [];
  let last = '';
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { items, reached } = await store.shard.devices.find({ ...query, after });
    expect(items.length).toBeLessThanOrEqual(query.scanMax);
    for (const { device, position } of items) {
      expect(position > last, `${position} behind ${last}`).toBe(true);
      expect(position).toMatch(/^[\0-\xff]{1,60}$/);
      last = position;
      found.push(deviceIdOf(device));
    }
    expect(reached === undefined || (reached > after && reached >= last)).toBe(true);
    after = reached;
  }
  return found;
}

describe.each(engines)('finding devices on $name', (engine) => {
  const store = useStore(engine);

  async function createFleet(): Promise<void> {
    const made = fleet.map(({ device, name, tags, enabled }) => newDevice(device, { name, tags, enabled }));
    await store.shard.devices.create([...made, newDevice(namesake, { name: 'Ab', tags })]);
    const seen = fleet.filter(({ seenMs }) => seenMs !== undefined);
    const activity = { address: undefined, fetches: [] };
    await store.shard.devices.noteActivity(
      seen.map(({ device, seenMs }) => ({ device, lastSeenMs: seenMs ?? 0, ...activity })),
    );
  }

  it('a search finds what fits and nothing else, once, in an order of its index, in steps of any size', async () => {
    await createFleet();
    for (const filter of filters) {
      const asked = { fleetId, ...filter };
      const expected = fleet.filter((one) => fits(one, asked)).map(({ device }) => deviceIdOf(device));
      for (const by of indexesFor(asked)) {
        const orders = [];
        for (const scanMax of [1, 7, 1_000]) orders.push(await search(store, { ...asked, by, scanMax }));
        const [order = []] = orders;
        expect([...order].sort(), JSON.stringify({ by, ...filter })).toEqual(expected);
        expect(orders).toEqual([order, order, order]);
      }
    }
    expect(await search(store, { fleetId: otherFleetId, by: 'id', scanMax: 5 })).toEqual([
      deviceIdOf(namesake),
    ]);
    expect(await search(store, { fleetId: 'FLEET003', by: 'id', scanMax: 5 })).toEqual([]);
  });

  it('what is found is the device with its mailbox and when it was seen', async () => {
    await store.shard.devices.create([newDevice(device, { name: 'one', tags: ['x'], enabled: false })]);
    await store.send(device);
    const address = Buffer.of(10, 0, 0, 1);
    await store.shard.devices.noteActivity([{ device, lastSeenMs: 5_000, address, fetches: [] }]);
    const asked = { fleetId, tags: ['x'], namePrefix: 'o', enabled: false, seenAfterMs: 1 };
    for (const by of indexesFor(asked)) {
      const { items } = await store.shard.devices.find({ ...asked, by, after: '', scanMax: 9 });
      const { position: _, ...status } = items[0] ?? { position: '' };
      expect(status).toEqual(await store.shard.devices.get(device));
      expect(status).toMatchObject({ mailboxSize: 1, lastSeenMs: 5_000, name: 'one' });
    }
  });

  it('in order of id the position is the id, and so in the order of names and times', async () => {
    await createFleet();
    const byId = await store.shard.devices.find({ fleetId, by: 'id', after: idOf(7), scanMax: 3 });
    expect(byId.items.map(({ position }) => position)).toEqual([8, 9, 10].map(idOf));
    expect(byId.reached).toBe(idOf(10));
    const asked = { fleetId, scanMax: 1_000, after: '' };
    const named = await store.shard.devices.find({ ...asked, by: 'name', namePrefix: 'A' });
    const found = named.items.map(({ name }) => name.toLowerCase());
    expect(found).toEqual([...found].sort());
    const seen = await store.shard.devices.find({ ...asked, by: 'seen', seenAfterMs: 0 });
    const times = seen.items.map(({ lastSeenMs = 0 }) => lastSeenMs);
    // The index may know times by the ten minutes.
    for (const [n, timeMs] of times.entries()) expect(timeMs).toBeGreaterThan((times[n - 1] ?? 0) - 600_000);
  });

  it('by last sight, devices are found from the end as well, in steps of any size, from any position', async () => {
    await createFleet();
    for (const filter of filters) {
      const asked = { fleetId, ...filter, by: 'seen' as const };
      const forward = await search(store, { ...asked, scanMax: 1_000 });
      const backward = [...forward].reverse();
      for (const scanMax of [1, 7, 1_000]) {
        const found: string[] = [];
        for (let after: string | undefined = ''; after !== undefined; ) {
          const step = await store.shard.devices.find({ ...asked, isReversed: true, after, scanMax });
          found.push(...step.items.map((one) => deviceIdOf(one.device)));
          after = step.reached;
        }
        expect(found, JSON.stringify(filter)).toEqual(backward);
      }
    }
    const asked = { fleetId, by: 'seen' as const, isReversed: true, scanMax: 1_000 };
    // Beyond the end, before the beginning, and text of a client that is no position.
    expect((await store.shard.devices.find({ ...asked, after: '\xff'.repeat(14) })).items).toHaveLength(60);
    expect((await store.shard.devices.find({ ...asked, after: '\0\0\0\0' })).items).toHaveLength(0);
    expect((await store.shard.devices.find({ ...asked, after: 'x' })).items.length).toBeLessThanOrEqual(60);
  });

  it('among some ids, devices are found that exist and fit, in steps of any size', async () => {
    await createFleet();
    const among = [idOf(3), idOf(4), idOf(8), 'NOBODYS001', idOf(59)].sort();
    const asked = { fleetId, by: 'among' as const, among };
    for (const scanMax of [1, 2, 1_000]) {
      expect(await search(store, { ...asked, scanMax })).toEqual([3, 4, 8, 59].map(idOf));
      expect(await search(store, { ...asked, enabled: false, scanMax })).toEqual([4, 8].map(idOf));
    }
    // By an index of its own it is a condition like the others.
    expect((await search(store, { ...asked, by: 'seen', scanMax: 7 })).sort()).toEqual(
      [3, 4, 8, 59].map(idOf),
    );
    expect(await search(store, { ...asked, among: [], scanMax: 5 })).toEqual([]);
  });

  it('a device is found by what it is now', async () => {
    await store.shard.devices.create([
      newDevice(device, { name: 'before', tags: ['before'], enabled: false }),
    ]);
    const note = (lastSeenMs: number) =>
      store.shard.devices.noteActivity([{ device, lastSeenMs, address: undefined, fetches: [] }]);
    await note(hourMs);
    await note(9 * hourMs);
    await store.shard.devices.change(device, { name: 'after', tags: ['after'], enabled: true });
    const found = async (filter: Omit<DeviceFilter, 'fleetId'>): Promise<boolean> => {
      const answers = [];
      for (const by of indexesFor({ fleetId, ...filter })) {
        answers.push((await search(store, { fleetId, ...filter, by, scanMax: 5 })).length === 1);
      }
      expect(new Set(answers).size).toBe(1);
      return answers[0] === true;
    };
    const was = [
      { tags: ['before'] },
      { namePrefix: 'before' },
      { enabled: false },
      { seenBeforeMs: 2 * hourMs },
    ];
    const is = [{ tags: ['after'] }, { namePrefix: 'after' }, { enabled: true }, { seenAfterMs: 9 * hourMs }];
    for (const filter of was) expect(await found(filter), JSON.stringify(filter)).toBe(false);
    for (const filter of is) expect(await found(filter), JSON.stringify(filter)).toBe(true);
    await store.shard.devices.delete(device);
    for (const filter of [...was, ...is]) expect(await found(filter)).toBe(false);
  });

  it('a search goes on behind devices that come and go', async () => {
    await createFleet();
    const found: string[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const step = await store.shard.devices.find({ fleetId, tags: ['hall'], by: 'tag', after, scanMax: 4 });
      found.push(...step.items.map(({ device }) => deviceIdOf(device)));
      const [last] = step.items.slice(-1);
      if (last !== undefined) await store.shard.devices.delete(last.device);
      after = step.reached;
    }
    const expected = fleet
      .filter(({ tags }) => tags.includes('hall'))
      .map(({ device }) => deviceIdOf(device));
    expect(found.sort()).toEqual(expected);
  });

  it('entries are counted up to a limit: of each index at least what a search by it finds', async () => {
    await createFleet();
    for (const filter of filters) {
      const asked = { fleetId, ...filter };
      const fitting = fleet.filter((one) => fits(one, asked)).length;
      for (const by of indexesFor(asked)) {
        const count = await store.shard.devices.countEntries(by, asked, 1_000);
        expect(count).toBeGreaterThanOrEqual(fitting);
        expect(count).toBeLessThanOrEqual(fleet.length);
        expect(await store.shard.devices.countEntries(by, asked, 2)).toBe(Math.min(count, 2));
      }
    }
    expect(await store.shard.devices.countEntries('id', { fleetId }, 1_000)).toBe(fleet.length);
    expect(await store.shard.devices.countEntries('tag', { fleetId, tags: ['nothing'] }, 1_000)).toBe(0);
  });

  it('a fleet counts its devices, and those that are disabled', async () => {
    const counts = () => store.shard.devices.fleetCounts(fleetId);
    expect(await counts()).toEqual({ devices: 0, disabled: 0 });
    await createFleet();
    expect(await counts()).toEqual({ devices: 60, disabled: 15 });
    const [first, next] = fleet.map((one) => one.device) as [DeviceKey, DeviceKey];
    await store.shard.devices.changeMany([first, next], { enabled: false });
    expect(await counts()).toEqual({ devices: 60, disabled: 16 });
    await store.shard.devices.change(first, { enabled: true });
    await store.shard.devices.delete(next);
    await store.shard.devices.delete(next);
    await store.shard.devices.create([newDevice(first), newDevice(next)]);
    expect(await counts()).toEqual({ devices: 59, disabled: 14 });
    await store.reopen();
    expect(await counts()).toEqual({ devices: 59, disabled: 14 });
    expect(await store.shard.devices.fleetCounts(otherFleetId)).toEqual({ devices: 1, disabled: 0 });
  });

  it('devices that were seen since some time are counted exactly, in steps of any size', async () => {
    await createFleet();
    for (const n of [1, 13, 40, 59, 70]) {
      for (const scanMax of [1, 7, 1_000]) {
        for (const offMs of [-1, 0, 1]) {
          const seenAfterMs = n * (hourMs / 12) + n + offMs;
          let total = 0;
          for (let after: string | undefined = ''; after !== undefined; ) {
            const step: CountStep = await store.shard.devices.countStep(
              'seen',
              { fleetId, seenAfterMs },
              after,
              scanMax,
            );
            expect(step.count).toBeLessThanOrEqual(scanMax);
            total += step.count;
            after = step.reached;
          }
          expect(total).toBe(fleet.filter((one) => (one.seenMs ?? 0) >= seenAfterMs).length);
        }
      }
    }
  });

  it('ids of a fleet, and of those that have a tag, come in order by pages', async () => {
    await createFleet();
    const all = fleet.map(({ device }) => deviceIdOf(device));
    expect(await store.shard.devices.ids(fleetId, '', 1_000)).toEqual(all);
    expect(await store.shard.devices.ids(fleetId, idOf(9), 5)).toEqual(all.slice(10, 15));
    expect(await store.shard.devices.ids(fleetId, idOf(59), 5)).toEqual([]);
    // A cursor need be no device that there is.
    expect(await store.shard.devices.ids(fleetId, 'DEVICE0009A', 2)).toEqual(all.slice(10, 12));
    expect(await store.shard.devices.ids('FLEET003', '', 5)).toEqual([]);
    for (const tag of [...tags, 'nothing']) {
      const tagged = fleet.filter((one) => one.tags.includes(tag)).map(({ device }) => deviceIdOf(device));
      const found: string[] = [];
      for (;;) {
        const page = await store.shard.devices.idsWithTag(fleetId, tag, found.at(-1) ?? '', 4);
        if (page.length === 0) break;
        expect(page.length).toBeLessThanOrEqual(4);
        found.push(...page);
      }
      expect(found).toEqual(tagged);
    }
    const [other] = await store.shard.devices.idsWithTag(otherFleetId, 'hall', '', 9);
    expect(other).toBe(deviceIdOf(namesake));
  });
});
