import { pino } from 'pino';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { WorkerMetrics } from '../../../src/core/telemetry/worker-metrics.ts';
import type { Enqueue, SettleVerb } from '../../../src/domain/mail/mail.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import {
  exclusiveMailOperations,
  type MailOptions,
  mailOperations,
} from '../../../src/storage/postgres/mail/mail-operations.ts';
import { PostgresDeadLetters } from '../../../src/storage/postgres/mail/postgres-dead-letters.ts';
import { PostgresMail } from '../../../src/storage/postgres/mail/postgres-mail.ts';
import { migrate } from '../../../src/storage/postgres/schema/migrate.ts';
import type { OperationType, OperationWrites } from '../../../src/storage/postgres/writes/operation.ts';
import type { UnitOfWork } from '../../../src/storage/postgres/writes/unit-of-work.ts';
import { Writer } from '../../../src/storage/postgres/writes/writer.ts';
import { configWith } from '../../harness/server/config.ts';

/** Devices of one fleet. */
export const deviceOf = (number: number): DeviceKey =>
  deviceKeyOf('FLEET001', `DEVICE${String(number).padStart(4, '0')}`);

/** A mail that lives for longer than any test. */
export function mailFor(device: DeviceKey, more: Partial<Enqueue> = {}): Enqueue {
  const plain = { name: 'note', payload: Buffer.from('{}'), ttlSeconds: 3_600, mailboxMailsMax: 1_000 };
  return { device, ...plain, ...more };
}

/** One node of several on a database: what it writes and reads of mail. */
export class MailNode {
  readonly database: Database;
  readonly reads: PostgresMail;
  readonly letters: PostgresDeadLetters;
  /** Units of work done by each commit. */
  readonly done: UnitOfWork[] = [];
  /** SQLSTATE and the like of what the database did not do. */
  readonly failures: string[] = [];
  readonly #writer: Writer;

  constructor(url: string, changed: Partial<MailOptions> = {}) {
    const config = configWith({ shardQueueBytesMax: 1e9 });
    const options: MailOptions = { ...config, ...changed };
    const log = pino({ level: 'warn' }, { write: (line: string) => void this.failures.push(line) });
    this.database = new Database({ url, connectionsMax: 4, timeoutMilliseconds: 30_000, log });
    this.#writer = new Writer({
      database: this.database,
      operations: mailOperations(options),
      exclusiveOperations: exclusiveMailOperations(options),
      concurrency: 3,
      commitDelayMilliseconds: config.commitDelayMilliseconds,
      settings: config.settings,
      metrics: new WorkerMetrics([], WorkerMetrics.allocate([])),
      log,
      onCommit: (work) => void this.done.push(work),
    });
    this.reads = new PostgresMail(this.database, this.#writer);
    this.letters = new PostgresDeadLetters(this.database, this.#writer);
  }

  write<T extends OperationType>(
    type: T,
    params: OperationWrites[T]['params'],
  ): Promise<OperationWrites[T]['answer']> {
    return this.#writer.write(type, params);
  }

  /** A mail that must be taken. Answers its id. */
  async send(device: DeviceKey, more: Partial<Enqueue> = {}): Promise<Uint8Array> {
    const outcome = await this.write('enqueue', mailFor(device, more));
    if (outcome.result !== 'queued') throw new Error(outcome.result);
    return outcome.mailId;
  }

  settle(
    device: DeviceKey,
    mailId: Uint8Array,
    verb: SettleVerb,
  ): Promise<OperationWrites['settle']['answer']> {
    return this.write('settle', { device, mailId, verb });
  }

  /** All that is due, in as many rounds as it takes. */
  async sweep(what: 'due' | 'old'): Promise<void> {
    while (await this.write('sweep', what));
  }

  async close(): Promise<void> {
    await this.#writer.close();
    await this.database.close();
  }
}

/** Tables and mailboxes of so many devices, from the first on. */
export async function prepare(url: string, devices: number): Promise<void> {
  const log = pino({ level: 'silent' });
  const database = new Database({ url, connectionsMax: 1, timeoutMilliseconds: 30_000, log });
  await migrate(database);
  await database.query('CREATE TABLE record_all PARTITION OF record DEFAULT');
  await database.query('CREATE TABLE idempotency_all PARTITION OF idempotency DEFAULT');
  for (let number = 1; number <= devices; number += 1) {
    await database.query(`INSERT INTO mailbox VALUES ($1, 0, 1, 1, NULL, 0, '')`, [deviceOf(number)]);
  }
  await database.close();
}
