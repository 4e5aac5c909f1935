import { rmSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { Registry } from '../../../src/declarations/registry.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import { registryTables } from '../../../src/maintenance/environments.ts';
import { FleetRelease } from '../../../src/server/control-plane/fleet-release.ts';
import { LeftRecords } from '../../../src/server/control-plane/left-records.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { configWith } from '../../harness/server/config.ts';
import { openEnvironment } from '../../harness/storage/environment.ts';
import { engines } from '../../storage/contract/engine.ts';
import {
  device,
  fleetId,
  namesake,
  newDevice,
  payloadOf,
  second,
  useStore,
} from '../../storage/contract/store.ts';

const fleet = { fleetId, name: '', createdAtMs: 1 };

describe.each(engines)('the id of a deleted fleet on $name', (engine) => {
  const store = useStore(engine);

  function openRegistry(): Registry {
    const folder = temporaryFolder();
    const registry = new Registry(openEnvironment(folder, registryTables), configWith());
    onTestFinished(async () => {
      await registry.close();
      rmSync(folder, { recursive: true });
    });
    return registry;
  }

  async function removeDevices(): Promise<number> {
    const ids = await store.shard.devices.ids(fleetId, '', 10);
    for (const id of ids) await store.shard.devices.delete(deviceKeyOf(fleetId, id));
    return ids.length;
  }

  /** Looks as a start does: nothing is remembered of an earlier look. */
  async function look(registry: Registry): Promise<string[]> {
    const options = { shards: [store.shard], lateWriteMilliseconds: 0, proceed: () => {} };
    await new FleetRelease({ ...options, registry, removeDevices, log: createLog('silent') }).run();
    return registry.retired();
  }

  it('is free at once where it has left nothing, and nobody can tell that there was one', async () => {
    const registry = openRegistry();
    await registry.createFleet(fleet);
    await registry.retireFleet(fleetId);
    expect([registry.has(fleetId), registry.snapshots(), registry.deleting()]).toEqual([false, [], []]);
    expect(await look(registry)).toEqual([]);
    await registry.createFleet(fleet);
    expect(registry.has(fleetId)).toBe(true);
  });

  it('costs one reading of the logs, though such fleets are looked at in turns', async () => {
    const record = { kind: 'datapoint', schema: 'reading', payload: payloadOf({ a: 1 }) } as const;
    await store.shard.log.append({ device: namesake, ...record });
    const read: number[] = [];
    const log: Pick<Shard['log'], 'read'> = {
      read: (position, ...more) => {
        read.push(position);
        return store.shard.log.read(position, ...more);
      },
    };
    const left = new LeftRecords([{ log }]);
    for (const id of ['GARDEN98', 'GARDEN99']) expect(await left.without([id], () => {})).toEqual([id]);
    read.length = 0;
    for (const id of ['GARDEN98', 'GARDEN99']) expect(await left.without([id], () => {})).toEqual([id]);
    expect(read).toEqual([]);
  });

  it('is not given again while there is a record, a dead letter, or a device that came late', async () => {
    const registry = openRegistry();
    await registry.createFleet(fleet);
    await store.create(device, namesake);
    const record = { kind: 'datapoint', schema: 'reading', payload: payloadOf({ a: 1 }) } as const;
    await store.shard.log.append({ device, ...record });
    await store.settle(device, await store.send(device), 'reject');
    await registry.deleteFleet(fleetId);
    await removeDevices();
    await registry.retireFleet(fleetId);
    // A creation that was under way as the fleet was deleted.
    await store.shard.devices.create([newDevice(second)]);
    // The last of a log stays, however old it is.
    await store.shard.log.append({ device: namesake, ...record });

    expect(await look(registry)).toEqual([fleetId]);
    const again = registry.createFleet(fleet);
    await expect(again).rejects.toMatchObject({ code: 'already_exists' });
    await expect(again).rejects.toThrow('logRetentionSeconds');
    expect(() => registry.declared(fleetId)).toThrow('There is no such fleet.');

    await store.reopen({ logRetentionSeconds: 0.001 });
    await expect.poll(() => look(registry)).toEqual([]);
    expect(await store.shard.devices.ids(fleetId, '', 10)).toEqual([]);
    expect(await store.letterIds()).toEqual([]);
    const { records } = await store.shard.log.read(0);
    expect(records.map((one) => one.device)).not.toContain(device);
    await registry.createFleet(fleet);
  });
});
