import { createHash } from 'node:crypto';
import { type DeviceKey, deviceKeyLength } from '../../src/core/identity.ts';
import { generateUuid, uuidBytesLength } from '../../src/core/uuid.ts';
import type { Enqueue, EnqueueOutcome } from '../../src/domain/mail/mail.ts';
import { shardOf } from '../../src/domain/placement.ts';
import type { Environment } from '../../src/storage/lmdb/environment/environment.ts';
import {
  deadDeviceAt,
  readSplitDevice,
  sequenceBytes,
  tagDigestBytes,
} from '../../src/storage/lmdb/layout/keys.ts';
import { openTables, tableNames } from '../../src/storage/lmdb/layout/tables.ts';
import { readLog } from '../../src/storage/lmdb/log/ingest-log.ts';
import { encodeLogRecord, encodeLogRecords } from '../../src/storage/lmdb/log/log-record.ts';
import { ShardState } from '../../src/storage/lmdb/shard/state.ts';
import type { ServerReport } from '../harness/server/server.ts';
import { eachShard } from '../harness/storage/log.ts';

/** Offset of the device in a key, for the tables where that is not in front. */
const deviceAt: Record<string, number> = {
  tags: tagDigestBytes,
  retiring: sequenceBytes,
  expiry: sequenceBytes,
  due: sequenceBytes,
  receipts: uuidBytesLength,
  dead: deadDeviceAt,
  idempotency: uuidBytesLength,
  sent: uuidBytesLength,
};

const ofNoDevice: readonly string[] = ['log', 'times', 'counts', 'fleetMail'];

/** Everything that a data folder holds of devices, wherever it lies. */
export interface ShardRecords {
  /** One line a record, sorted. */
  records: string[];
  /** Records in another shard than their device's. */
  misplaced: string[];
  /** Devices whose log records are out of order when one log is read behind another, lowest shard first. */
  disordered: string[];
}

/** Reads a data folder whose server has ended. */
export async function readShardRecords(report: ServerReport): Promise<ShardRecords> {
  const found: ShardRecords = { records: [], misplaced: [], disordered: [] };
  const newestIds = new Map<DeviceKey, string>();
  let shard = 0;
  await eachShard(report, (environment) => {
    for (const name of tableNames.filter((table) => !ofNoDevice.includes(table))) {
      const at = deviceAt[name] ?? 0;
      for (const { key, value } of environment.table(name).getRange({})) {
        const isSplit = ['names', 'seen', 'waiting'].includes(name);
        const device = isSplit
          ? readSplitDevice(key)
          : (key.toString('latin1', at, at + deviceKeyLength) as DeviceKey);
        const line = `${name} ${key.toString('hex')} ${createHash('md5').update(value).digest('hex')}`;
        found.records.push(line);
        if (shardOf(device, report.shards) !== shard) found.misplaced.push(line);
      }
    }
    for (const { id, device, kind, schema, payload } of readLog(environment.table('log'))) {
      const idText = id.toString('hex');
      found.records.push(`log ${idText} ${device} ${kind} ${schema} ${payload}`);
      if ((newestIds.get(device) ?? '') >= idText) found.disordered.push(device);
      newestIds.set(device, idText);
    }
    shard += 1;
  });
  found.records.sort();
  return found;
}

/** The domain of a shard, to apply writes to inside a transaction. */
export function openState(environment: Environment): ShardState {
  return new ShardState(openTables(environment), {
    idempotencyWindowSeconds: 86_400,
    settings: { current: { idempotencySkewSeconds: 300 } },
    clockJumpGraceSeconds: 86_400,
    delayedMailsPerDeviceMax: 100,
    receiptRetentionSeconds: 86_400,
    deadLetterRetentionSeconds: 86_400,
    deadLettersPerFleetMax: 1_000,
  });
}

const mailsPerDevice = 5;
const batches = 4;

/**
 * Gives every device of a folder whose server has ended something in each table: mail, of which one was
 * requeued, one acknowledged, one rejected and one is delayed, each sent for something; a last-seen time; a queue; and in
 * each of several commits a record with its key.
 */
export async function fillShards(report: ServerReport): Promise<void> {
  await eachShard(report, async (environment) => {
    const state = openState(environment);
    const devices = [...environment.table('devices').getKeys({})].map(
      (key) => key.toString('latin1') as DeviceKey,
    );
    for (let batch = 0; batch < batches; batch += 1) {
      await environment.write(() => {
        for (const device of devices) {
          const payload = Buffer.from(`{"batch":${batch}}`);
          const record = encodeLogRecord({ device, kind: 'datapoint', schema: 'reading', payload });
          const idempotency = { key: generateUuid(), digest: Buffer.alloc(32, batch) };
          state.apply({ type: 'ingest', params: { device, record, idempotency } });
        }
        state.flush();
      });
    }
    await environment.write(() => {
      for (const device of devices) {
        const ids = Array.from({ length: mailsPerDevice }, (_, index) => enqueue(state, device, index));
        const [first, second, third] = ids as [Uint8Array, Uint8Array, Uint8Array];
        state.apply({ type: 'settle', params: { device, mailId: first, verb: 'requeue' } });
        state.apply({ type: 'settle', params: { device, mailId: second, verb: 'ack' } });
        state.apply({ type: 'settle', params: { device, mailId: third, verb: 'reject' } });
        enqueue(state, device, mailsPerDevice, { deliverAtMs: Date.now() + 86_400_000 });
        const records = encodeLogRecords(device, [undefined]);
        const queue = { name: 'q', seq: 7 };
        state.apply({ type: 'sync', params: { device, records, queue, settlements: [] } });
        state.apply({
          type: 'noteActivity',
          params: [{ device, lastSeenMs: Date.now(), address: Buffer.of(127, 0, 0, 1), fetches: [] }],
        });
      }
      state.flush();
    });
  });
}

function enqueue(
  state: ShardState,
  device: DeviceKey,
  index: number,
  more: Partial<Enqueue> = {},
): Uint8Array {
  const payload = Buffer.from(`{"index":${index}}`);
  const dedupeKey = new Uint8Array([...generateUuid(), index]);
  const params = {
    device,
    name: 'note',
    payload,
    ttlSeconds: 86_400,
    mailboxMailsMax: 1_000,
    dedupeKey,
    ...more,
  };
  const outcome = state.apply({ type: 'enqueue', params }) as EnqueueOutcome;
  if (outcome.result !== 'queued') throw new Error(outcome.result);
  return outcome.mailId;
}
