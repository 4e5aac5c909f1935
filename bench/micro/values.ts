import { generateUuid } from '../../src/core/uuid.ts';
import type { Mail } from '../../src/domain/mail/mail.ts';
import { emptyMailbox } from '../../src/domain/mail/mail-fields.ts';
import { rememberEnd, settledMax } from '../../src/domain/mail/settled-mails.ts';
import type { Table } from '../../src/storage/lmdb/environment/stored-tables.ts';
import {
  decodeCredentials,
  decodeDevice,
  encodeDevice,
} from '../../src/storage/lmdb/layout/device-record.ts';
import { decodeMail, encodeMail } from '../../src/storage/lmdb/layout/mail-record.ts';
import {
  decodeMailbox,
  encodeMailbox,
  readHead,
  readSize,
} from '../../src/storage/lmdb/layout/mailbox-record.ts';
import { IngestLog, readLog } from '../../src/storage/lmdb/log/ingest-log.ts';
import { encodeLogRecord } from '../../src/storage/lmdb/log/log-record.ts';
import { type Group, group, type Microbench, repeated } from './microbench.ts';
import { cycled, payload, sampleDevice } from './samples.ts';

/** The records of the store, written and read. */
export async function values(): Promise<Group> {
  const device = sampleDevice().device;
  const deviceBytes = encodeDevice(device);
  const mail: Mail = {
    id: generateUuid(),
    name: 'water',
    payload,
    requeueCount: 0,
    requeuesMax: undefined,
    fetchCount: 0,
    acceptedAtMs: Date.now(),
    expiresAtMs: Date.now() + 604_800_000,
    firstFetchedAtMs: undefined,
  };
  const mailBytes = encodeMail(mail);
  const mailbox = { ...emptyMailbox(), size: 3, head: 40, tail: 43 };
  for (let i = 0; i < settledMax; i += 1) rememberEnd(mailbox, generateUuid(), 'acked');
  const mailboxBytes = encodeMailbox(mailbox);
  return group(
    repeated('mail record written', () => encodeMail(mail)),
    repeated('mail record read', () => decodeMail(mailBytes)),
    repeated('mailbox record written', () => encodeMailbox(mailbox)),
    repeated('mailbox record read', () => decodeMailbox(mailboxBytes)),
    repeated(
      'size and head read off a mailbox record',
      () => readSize(mailboxBytes) + readHead(mailboxBytes),
    ),
    repeated('device record written', () => encodeDevice(device)),
    repeated('device record read', () => decodeDevice(device.device, deviceBytes)),
    repeated('credentials read off a device record', () => decodeCredentials(deviceBytes)),
    ...logBatches(256),
  );
}

/** Measures a record in a batch of `batch`: the codec with a table that keeps only the last value. */
function logBatches(batch: number): Microbench[] {
  const entry = { key: Buffer.alloc(6), value: Buffer.alloc(0) };
  const table = {
    putSync: (key: Buffer, value: Buffer): boolean => {
      Object.assign(entry, { key, value });
      return true;
    },
    getRange: () => (entry.value.length === 0 ? [] : [entry]),
  } as unknown as Table;
  const log = new IngestLog(table, Date.now);
  const devices = Array.from({ length: batch }, () => sampleDevice().device.device);
  const write = (): void => {
    for (let index = 0; index < batch; index += 1) {
      const device = cycled(devices, index);
      log.append(encodeLogRecord({ device, kind: 'datapoint', schema: 'reading', payload }));
    }
    log.flush();
  };
  write();
  const batches = {
    conditions: { batch, payloadBytes: payload.length },
    operations: batch,
    isAsync: false,
  };
  return [
    { ...batches, workload: 'ingest-log record written', run: write },
    { ...batches, workload: 'ingest-log record read', run: () => [...readLog(table)].length },
  ];
}
