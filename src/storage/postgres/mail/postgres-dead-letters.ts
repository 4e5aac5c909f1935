import type { DeviceKey } from '../../../core/identity.ts';
import {
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterWithPayload,
  isWanted,
} from '../../../domain/mail/ended-mail.ts';
import { ShardDeadLetters } from '../../../domain/mail/shard-mail.ts';
import type { Page } from '../../../domain/page.ts';
import type { Database } from '../connection/database.ts';
import type { DeadLetterRow } from '../schema/tables.ts';
import type { Writer } from '../writes/writer.ts';
import { letterKey } from './dead-letters.ts';

/** Maximum letters scanned per page. */
const scannedMax = 1_000;

const letterColumns = `fleet_id, mail_id, device, reason, died_at_ms, name, queued_at_ms, fetch_count, requeue_count,
  octet_length(payload) AS payload_bytes`;
const lettersFrom = `
  SELECT ${letterColumns} FROM dead_letter
  WHERE fleet_id = $1 AND (mail_id, device) > ($2, $3) ORDER BY mail_id, device LIMIT $4`;
const letterOf = `
  SELECT ${letterColumns}, payload FROM dead_letter WHERE fleet_id = $1 AND mail_id = $2 AND device = $3`;

type LetterRow = Omit<DeadLetterRow, 'payload' | 'first_fetched_at_ms' | 'requeues_max'> & {
  payload_bytes: number;
};

/** The dead letters of a shard on PostgreSQL. */
export class PostgresDeadLetters extends ShardDeadLetters {
  readonly #database: Database;

  constructor(database: Database, writer: Writer) {
    super(writer);
    this.#database = database;
  }

  /** Cursor: mail id and device of a letter in hexadecimal digits, as on LMDB. */
  async list(
    fleetId: string,
    filter: DeadLetterFilter,
    after: string,
    limit: number,
  ): Promise<Page<DeadLetter>> {
    const last = Buffer.from(after, 'hex');
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    const looksMax = isFiltered ? scannedMax : Math.min(limit, scannedMax);
    const mailId = last.subarray(0, 16);
    const rows = await this.#database.query<LetterRow>(lettersFrom, [
      fleetId,
      mailId,
      last.toString('latin1', 16),
      looksMax,
    ]);
    const items: DeadLetter[] = [];
    for (const [index, row] of rows.entries()) {
      const letter = letterFrom(row);
      if (isWanted(letter, filter)) items.push(letter);
      if (items.length === limit || index + 1 === looksMax) return { items, next: cursorOf(letter) };
    }
    return { items, next: null };
  }

  async get(device: DeviceKey, mailId: Uint8Array): Promise<DeadLetterWithPayload | undefined> {
    const { fleet_id, mail_id } = letterKey(device, mailId);
    const [row] = await this.#database.query<LetterRow & { payload: Buffer }>(letterOf, [
      fleet_id,
      mail_id,
      device,
    ]);
    return row && { ...letterFrom(row), payload: row.payload };
  }
}

function letterFrom(row: LetterRow): DeadLetter {
  return {
    device: row.device,
    mailId: row.mail_id,
    name: row.name,
    reason: row.reason,
    diedAtMs: row.died_at_ms,
    queuedAtMs: row.queued_at_ms ?? undefined,
    fetchCount: row.fetch_count,
    requeueCount: row.requeue_count,
    payloadBytes: row.payload_bytes,
  };
}

function cursorOf({ mailId, device }: DeadLetter): string {
  return mailId.toString('hex') + Buffer.from(device, 'latin1').toString('hex');
}
