/** Contract of `Shard`: devices with open streams. */

import { describe, expect, it } from 'vitest';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../../src/core/identity.ts';
import { engines } from './engine.ts';
import { fleetId, NotingSink, namesake, newDevice, otherFleetId, useStore } from './store.ts';

const devices = Array.from({ length: 12 }, (_, n) =>
  deviceKeyOf(fleetId, `DEVICE${String(n).padStart(4, '0')}`),
);

describe.each(engines)('presence on $name', (engine) => {
  const store = useStore(engine);

  /** Opens a stream of every second device. */
  async function connect(): Promise<{ connected: DeviceKey[]; leave: (() => void)[] }> {
    const made = devices.map((device, n) => newDevice(device, { tags: n % 3 === 0 ? ['third'] : [] }));
    await store.shard.devices.create([...made, newDevice(namesake)]);
    const connected = devices.filter((_, n) => n % 2 === 0);
    const leave: (() => void)[] = [];
    for (const [n, device] of connected.entries()) {
      const shard = n % 2 === 0 ? store.shard : store.elsewhere;
      leave.push(await shard.streams.subscribe(device, new NotingSink()));
    }
    return { connected, leave };
  }

  const count = (of = fleetId) => store.shard.streams.presence.connectedCount(of);

  it('devices with open streams are known wherever one asks, each once, whatever streams it has', async () => {
    const { connected, leave } = await connect();
    const again = await store.shard.streams.subscribe(connected[0] as DeviceKey, new NotingSink());
    for (const shard of [store.shard, store.elsewhere]) {
      await expect.poll(() => shard.streams.presence.connectedCount(fleetId)).toBe(6);
      expect(await shard.streams.presence.connectedCount(otherFleetId)).toBe(0);
      expect(await shard.streams.presence.areConnected([...devices, namesake])).toEqual([
        ...devices.map((device) => connected.includes(device)),
        false,
      ]);
    }
    expect(await store.shard.streams.presence.areConnected([])).toEqual([]);
    leave[0]?.();
    expect(await count()).toBe(6);
    again();
    leave[1]?.();
    await expect.poll(() => count()).toBe(4);
    // A stream that has left cannot leave again.
    for (const one of [...leave, again]) one();
    for (const one of leave) one();
    await expect.poll(() => count()).toBe(0);
    expect(await store.shard.streams.presence.areConnected(connected)).not.toContain(true);
  });

  it('connected devices come by pages, in an order of their own', async () => {
    const { connected } = await connect();
    await expect.poll(() => count()).toBe(6);
    const all = await store.shard.streams.presence.connectedDevices(fleetId, '', 100);
    expect(all.map(({ device }) => device).sort()).toEqual(connected);
    const positions = all.map(({ position }) => position);
    expect(positions).toEqual([...new Set(positions)].sort());
    for (const position of positions) expect(position).toMatch(/^[0-9a-f]{3}[A-Za-z0-9]{10}$/);
    const paged = [];
    for (let after = ''; ; ) {
      const page = await store.shard.streams.presence.connectedDevices(fleetId, after, 2);
      paged.push(...page);
      after = page.at(-1)?.position ?? '';
      if (after === '') break;
      expect(page.length).toBeLessThanOrEqual(2);
    }
    expect(paged).toEqual(all);
  });

  it('a search finds devices by whether they are connected', async () => {
    const { connected } = await connect();
    await expect.poll(() => count()).toBe(6);
    const find = async (connectedIs: boolean, by: 'id' | 'connected' | 'tag', tag?: string) => {
      const found: string[] = [];
      for (let after: string | undefined = ''; after !== undefined; ) {
        const query = {
          fleetId,
          connected: connectedIs,
          tags: tag === undefined ? undefined : [tag],
          by,
          after,
          scanMax: 2,
        };
        const { items, reached } = await store.shard.devices.find(query);
        found.push(...items.map(({ device }) => deviceIdOf(device)));
        after = reached;
      }
      return found.sort();
    };
    const idsOf = (keys: readonly DeviceKey[]) => keys.map(deviceIdOf);
    const others = devices.filter((device) => !connected.includes(device));
    const third = devices.filter((_, n) => n % 6 === 0);
    expect(await find(true, 'connected')).toEqual(idsOf(connected));
    expect(await find(true, 'id')).toEqual(idsOf(connected));
    expect(await find(false, 'id')).toEqual(idsOf(others));
    for (const by of ['connected', 'tag', 'id'] as const)
      expect(await find(true, by, 'third')).toEqual(idsOf(third));
    for (const max of [2, 100]) {
      const counted = store.shard.devices.countEntries('connected', { fleetId, connected: true }, max);
      expect(await counted).toBe(Math.min(max, 6));
    }
  });

  it('D21: a device that is deleted or disabled is not connected any more', async () => {
    const { connected } = await connect();
    const [first, second, third] = connected as [DeviceKey, DeviceKey, DeviceKey];
    await store.shard.devices.delete(first);
    await store.shard.devices.change(second, { enabled: false });
    await store.shard.devices.change(third, { name: 'other' });
    await expect.poll(() => count()).toBe(4);
    expect(await store.shard.streams.presence.areConnected([first, second, third])).toEqual([
      false,
      false,
      true,
    ]);
  });
});
