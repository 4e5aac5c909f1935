/** Contract of `Shard`: devices. */

import { describe, expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import type { Device, DeviceChange } from '../../../src/domain/devices/device.ts';
import { engines } from './engine.ts';
import { device, fleetId, namesake, newDevice, second, useStore } from './store.ts';

describe.each(engines)('devices on $name', (engine) => {
  const store = useStore(engine);

  /** The device as it was given, for tests to compare. */
  async function known(key: DeviceKey): Promise<Partial<Device> | undefined> {
    const status = await store.shard.devices.get(key);
    if (status === undefined) return undefined;
    const { name, tags, enabled, createdAtMs } = status;
    return { device: status.device, name, tags, enabled, createdAtMs };
  }

  it('a device is answered as it was created, before and after a restart; one that is not there, as nothing', async () => {
    const given = {
      name: 'Öl 🚪 "1"',
      tags: ['hall', 'Öl', '', 'a b'],
      enabled: false,
      createdAtMs: 123_456,
    };
    expect(await store.shard.devices.create([newDevice(device, given)])).toBeUndefined();
    expect(await known(device)).toEqual({ device, ...given });
    expect(await store.shard.devices.get(device)).toMatchObject({ mailboxSize: 0, lastSeenMs: undefined });
    await store.reopen();
    expect(await known(device)).toEqual({ device, ...given });
    for (const nobody of [second, namesake]) {
      expect(await store.shard.devices.get(nobody)).toBeUndefined();
      expect(await store.shard.devices.credentials(nobody)).toBeUndefined();
    }
  });

  it('all are created, or none where one of them is there already', async () => {
    const all = Array.from({ length: 200 }, (_, n) => deviceKeyOf(fleetId, `D${String(n).padStart(9, '0')}`));
    const [first, ...rest] = all as [DeviceKey, ...DeviceKey[]];
    await store.shard.devices.create([newDevice(first, { name: 'before' })]);
    expect(await store.shard.devices.create(all.map((key) => newDevice(key)))).toBe(first);
    expect(await store.shard.devices.ids(fleetId, '', 1_000)).toHaveLength(1);
    expect(await known(first)).toMatchObject({ name: 'before' });
    expect(await store.shard.devices.create(rest.map((key) => newDevice(key)))).toBeUndefined();
    expect(await store.shard.devices.ids(fleetId, '', 1_000)).toHaveLength(200);
    expect(await store.shard.devices.create([])).toBeUndefined();
  });

  it('a device that stands twice in one list is there already', async () => {
    const twice = [second, device, device].map((key) => newDevice(key));
    expect(await store.shard.devices.create(twice)).toBe(device);
    expect(await store.shard.devices.fleetCounts(fleetId)).toEqual({ devices: 0, disabled: 0 });
  });

  it('of those who create a device at once, one does', async () => {
    const shards = [store.shard, store.elsewhere, store.shard, store.elsewhere];
    const answers = await Promise.all(
      shards.map((shard, n) => shard.devices.create([newDevice(device, { name: String(n) })])),
    );
    expect(answers.filter((taken) => taken === undefined)).toHaveLength(1);
    expect(answers.filter((taken) => taken === device)).toHaveLength(3);
    expect(await known(device)).toMatchObject({ name: String(answers.indexOf(undefined)) });
    expect(await store.shard.devices.fleetCounts(fleetId)).toEqual({ devices: 1, disabled: 0 });
  });

  it('a change sets what it names and leaves the rest; of nobody it answers false', async () => {
    const given = { name: 'a', tags: ['x', 'y'], createdAtMs: 5 };
    await store.shard.devices.create([newDevice(device, given)]);
    const steps: [DeviceChange, Partial<Device>][] = [
      [{}, {}],
      [{ name: 'b' }, { name: 'b' }],
      [{ enabled: false }, { enabled: false }],
      [{ tags: ['z', 'x'] }, { tags: ['z', 'x'] }],
      [
        { name: '', tags: [], enabled: true },
        { name: '', tags: [], enabled: true },
      ],
    ];
    let expected: Partial<Device> = { device, enabled: true, ...given };
    for (const [change, changed] of steps) {
      expect(await store.shard.devices.change(device, change)).toBe(true);
      expected = { ...expected, ...changed };
      expect(await known(device)).toEqual(expected);
    }
    expect(await store.shard.devices.change(second, { name: 'c' })).toBe(false);
    expect(await known(second)).toBeUndefined();
  });

  it('tags are added behind those there are, each once, and removed from among them', async () => {
    await store.shard.devices.create([newDevice(device, { tags: ['a', 'b', 'c'] })]);
    const steps: [DeviceChange, string[]][] = [
      [{ addTags: ['d', 'b', 'd'] }, ['a', 'b', 'c', 'd']],
      [{ removeTags: ['b', 'nothing'] }, ['a', 'c', 'd']],
      // A tag that is both goes and comes: last.
      [{ addTags: ['a', 'e'], removeTags: ['a'] }, ['c', 'd', 'a', 'e']],
      [{ tags: ['x', 'y'], addTags: ['z'], removeTags: ['x'] }, ['y', 'z']],
    ];
    for (const [change, tags] of steps) {
      await store.shard.devices.change(device, change);
      expect(await known(device)).toMatchObject({ tags });
    }
  });

  it('a bulk change answers for each device at its place', async () => {
    const full = deviceKeyOf(fleetId, 'DEVICE0003');
    await store.shard.devices.create([
      newDevice(device, { tags: ['a'] }),
      newDevice(second, { tags: ['b', 'new'], name: 'now' }),
      newDevice(full, { tags: ['c', 'd'], name: 'before' }),
    ]);
    const change = { addTags: ['new'], tagsMax: 2, name: 'now' };
    const devices = [second, namesake, device, full, device];
    expect(await store.shard.devices.changeMany(devices, change)).toEqual([
      'unchanged',
      'not_found',
      'changed',
      'too_many_tags',
      'unchanged',
    ]);
    expect(await known(device)).toMatchObject({ tags: ['a', 'new'], name: 'now' });
    // Nothing of a change is done that would leave too many.
    expect(await known(full)).toMatchObject({ tags: ['c', 'd'], name: 'before' });
    // That a device is there is all that is answered of one.
    expect(await store.shard.devices.change(full, change)).toBe(true);
    expect(await known(full)).toMatchObject({ tags: ['c', 'd'], name: 'before' });
    expect(await store.shard.devices.changeMany([], change)).toEqual([]);
  });

  it('a device that is put is created, or changed as that says, or left', async () => {
    const put = (key: DeviceKey, change?: DeviceChange) => ({
      device: newDevice(key, { name: 'put', tags: ['t'] }),
      change,
    });
    await store.create(device);
    const outcomes = await store.shard.devices.put([
      put(device),
      put(device, { name: 'put' }),
      put(device, { name: 'put' }),
      put(device, { addTags: ['a', 'b'], tagsMax: 1 }),
      put(second),
      put(second),
      put(namesake, { name: 'unused' }),
    ]);
    expect(outcomes).toEqual([
      'exists',
      'changed',
      'unchanged',
      'too_many_tags',
      'created',
      'exists',
      'created',
    ]);
    expect(await known(device)).toMatchObject({ name: 'put', tags: [] });
    for (const key of [second, namesake])
      expect(await known(key)).toMatchObject({ name: 'put', tags: ['t'] });
  });

  it('a device that is deleted is gone with its mailbox, and one that is created anew begins empty', async () => {
    await store.create(device, second, namesake);
    const settled = await store.send(device);
    await store.settle(device, settled, 'ack');
    const mailId = await store.send(device);
    await store.send(second);
    await store.shard.devices.noteActivity([
      { device, lastSeenMs: 5_000, address: Buffer.of(127, 0, 0, 1), fetches: [] },
    ]);
    expect(await store.shard.devices.delete(device)).toBe(true);
    expect(await store.shard.devices.delete(device)).toBe(false);
    expect(await store.shard.devices.get(device)).toBeUndefined();
    expect(await store.shard.devices.credentials(device)).toBeUndefined();
    expect(await store.shard.mail.size(device)).toBe(0);
    expect(await store.shard.mail.head(device)).toEqual({ size: 0, mail: undefined });
    expect(await store.shard.mail.list(device, '', 10)).toEqual({ items: [], next: null });
    expect(await store.shard.mail.receipt(device, mailId)).toBeUndefined();
    expect([await store.mailIds(second), await known(namesake)]).toMatchObject([[expect.any(String)], {}]);

    await store.create(device);
    const anew = { mailboxSize: 0, lastSeenMs: undefined, lastAddress: undefined };
    expect(await store.shard.devices.get(device)).toMatchObject(anew);
    for (const id of [settled, mailId]) {
      expect(await store.settle(device, id, 'ack')).toEqual({ result: 'not_found', mailboxSize: 0 });
    }
    expect(await store.shard.mail.size(device)).toBe(0);
  });

  it('who asks where a change was made sees it at once, and everybody else soon', async () => {
    await store.create(device);
    expect(await known(device)).toBeDefined();
    await expect.poll(() => store.elsewhere.devices.get(device)).toBeDefined();
    await store.elsewhere.devices.change(device, { name: 'there' });
    expect(await store.elsewhere.devices.get(device)).toMatchObject({ name: 'there' });
    await expect.poll(() => store.shard.devices.get(device)).toMatchObject({ name: 'there' });
    await store.shard.devices.delete(device);
    expect(await store.shard.devices.credentials(device)).toBeUndefined();
    await expect.poll(() => store.elsewhere.devices.credentials(device)).toBeUndefined();
  });
});
