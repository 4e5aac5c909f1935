import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../src/core/identity.ts';
import { keyOfDevice, keyOfTag } from '../../src/shard/keys.ts';
import type { Device } from '../../src/shard/shard.ts';
import { buildTagIndex, digestOfTag } from '../../src/shard/tag-index.ts';
import type { Environment } from '../../src/store/environment.ts';
import { openShard } from '../harness/shard.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const { shard, environment, close } = openShard(folder);
afterAll(async () => {
  await close();
  rmSync(folder, { recursive: true });
});

const fleets = ['FLEET001', 'FLEET002'];
const tags = ['hall', 'door', 'Öl', '🚪', 'hall '];
const deviceOf = (device: DeviceKey, tags: readonly string[]): Device => ({
  device,
  enabled: true,
  secretDigests: [Buffer.alloc(32)],
  name: '',
  tags,
  createdAtMs: 0,
});

function keysOf(environment: Environment): string[] {
  return [...environment.table('tags').getKeys({})].map((key) => key.toString('hex'));
}

/** A page of two at a time. */
async function allWithTag(fleetId: string, tag: string): Promise<string[]> {
  const all: string[] = [];
  for (;;) {
    const page = await shard.devicesWithTag(fleetId, tag, all.at(-1) ?? '', 2);
    all.push(...page);
    if (page.length < 2) return all;
  }
}

const device = fc.tuple(fc.constantFrom(...fleets), fc.integer({ min: 0, max: 9 }));
const someTags = fc.array(fc.constantFrom(...tags), { maxLength: 4 });
const operation = fc.record({
  type: fc.constantFrom('create', 'tag', 'tag', 'rename', 'delete'),
  device,
  tags: someTags,
});

it('the devices of a tag are those that have it, whatever is done to devices', async () => {
  const model = new Map<DeviceKey, readonly string[]>();
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 40 }), async (operations) => {
      for (const {
        type,
        device: [fleetId, number],
        tags,
      } of operations) {
        const device = deviceKeyOf(fleetId, `DEVICE000${number}`);
        if (type === 'create') {
          const taken = await shard.createDevices([deviceOf(device, tags)]);
          expect(taken).toBe(model.has(device) ? device : undefined);
          if (taken === undefined) model.set(device, tags);
        } else if (type === 'delete') {
          expect(await shard.deleteDevice(device)).toBe(model.delete(device));
        } else {
          const change = type === 'tag' ? { tags } : { name: 'other' };
          expect(await shard.changeDevice(device, change)).toBe(model.has(device));
          if (type === 'tag' && model.has(device)) model.set(device, tags);
        }
      }
      for (const fleetId of fleets) {
        for (const tag of tags) {
          const expected = [...model].filter(
            ([device, has]) => device.startsWith(fleetId) && has.includes(tag),
          );
          expect(await allWithTag(fleetId, tag)).toEqual(
            expected.map(([device]) => deviceIdOf(device)).sort(),
          );
        }
      }
      const entries = [...model.values()].reduce((sum, has) => sum + new Set(has).size, 0);
      expect(keysOf(environment)).toHaveLength(entries);
    }),
    { numRuns: 25 },
  );
});

it('an index that is built anew is the one that was kept, whatever stood there before', async () => {
  const made = Array.from({ length: 12_000 }, (_, n) =>
    deviceOf(deviceKeyOf('FLEET003', `D${String(n).padStart(9, '0')}`), [`floor ${n % 7}`, 'all']),
  );
  await shard.createDevices(made);
  const kept = keysOf(environment);
  const stale = deviceKeyOf('FLEET003', 'DEVICEGONE');
  await environment.write(() => {
    for (const { device } of made.slice(0, 6_000)) {
      environment.table('tags').removeSync(keyOfTag(digestOfTag('all'), device));
    }
    environment.table('tags').putSync(keyOfTag(digestOfTag('all'), stale), Buffer.alloc(0));
  });
  // As by a start that is killed on the way, and then by one that is not.
  buildTagIndex(environment).next();
  expect(keysOf(environment).length).toBeLessThan(kept.length);
  for (const _ of buildTagIndex(environment));
  expect(keysOf(environment)).toEqual(kept);
});

it('a device of another tag with the same digest is not answered', async () => {
  const one = deviceKeyOf('FLEET004', 'DEVICE0001');
  const two = deviceKeyOf('FLEET004', 'DEVICE0002');
  await shard.createDevices([deviceOf(one, ['hall']), deviceOf(two, ['hall'])]);
  await environment.write(() => {
    for (const device of [one, two]) {
      environment.table('tags').putSync(keyOfTag(digestOfTag('attic'), device), Buffer.alloc(0));
    }
  });
  expect(await shard.devicesWithTag('FLEET004', 'attic', '', 10)).toEqual([]);
  expect(await shard.devicesWithTag('FLEET004', 'hall', '', 10)).toEqual(['DEVICE0001', 'DEVICE0002']);
});

it('a device whose record is damaged is not answered, and the others that have the tag are', async () => {
  const ids = ['DEVICE0001', 'DEVICE0002', 'DEVICE0003'];
  const [first, damaged, last] = ids as [string, string, string];
  await shard.createDevices(ids.map((id) => deviceOf(deviceKeyOf('FLEET005', id), ['hall'])));
  const key = keyOfDevice(deviceKeyOf('FLEET005', damaged));
  await environment.write(() => environment.table('devices').putSync(key, Buffer.of(1)));
  expect(await shard.devicesWithTag('FLEET005', 'hall', '', 10)).toEqual([first, last]);
  expect(await shard.deleteDevice(deviceKeyOf('FLEET005', damaged))).toBe(true);
});
