import { deviceKeyLength } from '../../core/identity.ts';
import { copyUuid, uuidBytesLength } from '../../core/uuid.ts';
import { keyDigestBytes } from '../../domain/idempotency.ts';
import { keyOfBroadcast, keyOfDedupe, keyOfDevice, readDevice } from '../../storage/lmdb/layout/keys.ts';
import type { Tables } from '../../storage/lmdb/layout/tables.ts';
import * as rows from '../../storage/postgres/schema/tables.ts';
import { keyOfIdempotency } from '../../storage/tables/idempotency-keys.ts';
import type { Part } from './part.ts';

/** Parts that keep anything from being done twice. */
export function dedupeParts(tables: Tables): Part[] {
  return [queues(tables), sent(tables), broadcastMarks(tables), idempotencyKeys(tables)];
}

function queues({ queues: table }: Tables): Part<rows.DeviceQueueRow> {
  return {
    name: 'queues',
    table: rows.deviceQueue,
    source: table,
    rowsOf: ({ key, value }) => [{ device: readDevice(key, 0), queues: Buffer.from(value) }],
    write(written) {
      for (const row of written) table.putSync(keyOfDevice(row.device), row.queues);
    },
  };
}

function sent({ sent: table }: Tables): Part<rows.DedupeRow> {
  return {
    name: 'sent once',
    table: rows.dedupe,
    source: table,
    rowsOf({ key, value }) {
      const rest = key.subarray(uuidBytesLength + deviceKeyLength);
      const once = Buffer.concat([key.subarray(0, uuidBytesLength), rest]);
      return [{ once, device: readDevice(key, uuidBytesLength), mail_id: copyUuid(value) }];
    },
    write(written) {
      for (const { once, device, mail_id } of written) table.putSync(keyOfDedupe(once, device), mail_id);
    },
  };
}

function broadcastMarks({ broadcast: table }: Tables): Part<rows.BroadcastMarkRow> {
  return {
    name: 'broadcast marks',
    table: rows.broadcastMark,
    source: table,
    rowsOf({ key, value }) {
      const device = readDevice(key, uuidBytesLength);
      return [{ broadcast: copyUuid(key), device, mail_id: copyUuid(value) }];
    },
    write(written) {
      for (const { broadcast, device, mail_id } of written) {
        table.putSync(keyOfBroadcast(broadcast, device), mail_id);
      }
    },
  };
}

function idempotencyKeys({ idempotency: table }: Tables): Part<rows.IdempotencyRow> {
  return {
    name: 'idempotency keys',
    table: rows.idempotency,
    source: table,
    rowsOf({ key, value }) {
      const row = {
        key: Buffer.from(key.subarray(0, uuidBytesLength)),
        scope: key.toString('latin1', uuidBytesLength),
        digest: Buffer.from(value.subarray(0, keyDigestBytes)),
        result: Buffer.from(value.subarray(keyDigestBytes)),
      };
      return [row];
    },
    write(written) {
      for (const { key, scope, digest, result } of written) {
        table.putSync(keyOfIdempotency(key, scope), Buffer.concat([digest, result]));
      }
    },
  };
}
