import { join } from 'node:path';
import { deviceKeyOf } from '../../src/core/identity.ts';
import { shardOf } from '../../src/domain/placement.ts';
import type { Environment } from '../../src/storage/lmdb/environment/environment.ts';
import { openTables } from '../../src/storage/lmdb/layout/tables.ts';
import { ShardState } from '../../src/storage/lmdb/shard/state.ts';
import { openShardEnvironment } from '../../src/threads/lmdb-shards.ts';
import { allocateCounters } from '../../src/threads/shared-counters.ts';
import { configWith } from '../../test/harness/server/config.ts';
import type { Credentials } from './subject.ts';

const mailsPerTransaction = 20_000;

export interface MailLoad {
  devices: readonly Credentials[];
  mailsPerDevice: number;
  payload: Buffer;
  /** How many mails are queued so far. */
  progress(mails: number): void;
}

/**
 * Queues mail in the data folder of a server that does not run, with the server's own code and a transaction
 * for thousands: millions in minutes, where requests to the admin API would take hours. In the order of the
 * keys, so that neighbours are written together.
 */
export async function loadMail(
  dataFolder: string,
  shards: number,
  { devices, mailsPerDevice, payload, progress }: MailLoad,
): Promise<void> {
  const config = configWith();
  const counters = allocateCounters(shards);
  const keys = devices.map(({ fleetId, deviceId }) => deviceKeyOf(fleetId, deviceId)).sort();
  const devicesPerTransaction = Math.ceil(mailsPerTransaction / mailsPerDevice);
  let queued = 0;
  for (let shard = 0; shard < shards; shard += 1) {
    const own = keys.filter((key) => shardOf(key, shards) === shard);
    const folder = join(dataFolder, 'shards', String(shard));
    const environment = openShardEnvironment(folder, shard, shards, config, counters);
    const state = new ShardState(openTables(environment), config);
    for (let start = 0; start < own.length; start += devicesPerTransaction) {
      const some = own.slice(start, start + devicesPerTransaction);
      await queueMail(environment, state, some, mailsPerDevice, payload);
      queued += some.length * mailsPerDevice;
      progress(queued);
    }
    await environment.close();
  }
}

type DeviceKey = ReturnType<typeof deviceKeyOf>;

async function queueMail(
  environment: Environment,
  state: ShardState,
  devices: readonly DeviceKey[],
  mailsPerDevice: number,
  payload: Buffer,
): Promise<void> {
  let refused = 0;
  await environment.write(() => {
    for (const device of devices) {
      for (let mail = 0; mail < mailsPerDevice; mail += 1) {
        const params = {
          device,
          name: 'water',
          payload,
          ttlSeconds: 604_800,
          mailboxMailsMax: mailsPerDevice,
        };
        const outcome = state.apply({ type: 'enqueue', params }) as { result: string };
        if (outcome.result !== 'queued') refused += 1;
      }
    }
    state.flush();
  });
  // Nobody is there to be told.
  state.takeEffects();
  if (refused > 0) throw new Error(`${refused} mails were not taken`);
}
