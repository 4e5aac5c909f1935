import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import {
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterWithPayload,
  isWanted,
  type Receipt,
} from '../../../domain/mail/ended-mail.ts';
import type { Mail, MailboxHead } from '../../../domain/mail/mail.ts';
import { sequenceFrom } from '../../../domain/mail/mail-sequence.ts';
import type { Page } from '../../../domain/shard.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Database } from '../connection/database.ts';
import { QueryBatcher } from '../connection/query-batcher.ts';
import type { DeadLetterRow, MailRow } from '../schema/tables.ts';
import { letterKey } from './dead-letters.ts';

/** Statements for mailbox heads in flight. */
const headReadsMax = 2;
/** Maximum letters scanned per page. */
const scannedMax = 1_000;

const mailColumns = `t.sequence, t.mail_id, t.name, t.payload, t.requeue_count, t.requeues_max, t.fetch_count,
  t.first_fetched_at_ms, t.accepted_at_ms, t.expires_at_ms`;
/** Reads from `head` on, so that dead rows in front of it cost nothing. */
const heads = `
  SELECT b.size, t.* FROM unnest($1::text[]) WITH ORDINALITY AS k (device, ordinal)
  LEFT JOIN mailbox b ON b.device = k.device
  LEFT JOIN LATERAL (
    SELECT ${mailColumns} FROM mail t WHERE t.device = b.device AND t.sequence >= b.head
    ORDER BY t.sequence LIMIT 1
  ) AS t ON true
  ORDER BY k.ordinal`;
const mailsFrom = `
  SELECT ${mailColumns} FROM mail t WHERE t.device = $1 AND t.sequence > $2 ORDER BY t.sequence LIMIT $3`;
const waiting = `
  SELECT 'queued' AS state, name, NULL::bigint AS deliver_at_ms, accepted_at_ms AS queued_at_ms, expires_at_ms,
    fetch_count, first_fetched_at_ms, requeue_count, NULL::bigint AS settled_at_ms
  FROM mail WHERE device = $1 AND mail_id = $2`;
/** Looks first under the original sequence, and last through the whole mailbox: the first hit ends the search. */
const receiptOf = `
  SELECT * FROM (
    ${waiting} AND sequence = $3
    UNION ALL SELECT 'delayed', name, deliver_at_ms, NULL, NULL, 0, NULL, 0, NULL
    FROM delayed_mail WHERE device = $1 AND mail_id = $2
    UNION ALL SELECT state, name, NULL, queued_at_ms, NULL, fetch_count, first_fetched_at_ms, requeue_count,
      settled_at_ms
    FROM receipt WHERE device = $1 AND mail_id = $2
    UNION ALL ${waiting}
  ) AS found LIMIT 1`;
const letterColumns = `fleet_id, mail_id, device, reason, died_at_ms, name, queued_at_ms, fetch_count, requeue_count,
  octet_length(payload) AS payload_bytes`;
const lettersFrom = `
  SELECT ${letterColumns} FROM dead_letter
  WHERE fleet_id = $1 AND (mail_id, device) > ($2, $3) ORDER BY mail_id, device LIMIT $4`;
const letterOf = `
  SELECT ${letterColumns}, payload FROM dead_letter WHERE fleet_id = $1 AND mail_id = $2 AND device = $3`;

type FoundMail = Omit<MailRow, 'device'>;
type HeadRow = { size: number | null } & { [C in keyof FoundMail]: FoundMail[C] | null };
type ReceiptRow = {
  state: Receipt['state'];
  name: string;
  deliver_at_ms: number | null;
  queued_at_ms: number | null;
  expires_at_ms: number | null;
  fetch_count: number;
  first_fetched_at_ms: number | null;
  requeue_count: number;
  settled_at_ms: number | null;
};
type LetterRow = Omit<DeadLetterRow, 'payload' | 'first_fetched_at_ms' | 'requeues_max'> & {
  payload_bytes: number;
};

/** Reads mail, receipts and dead letters. */
export class MailReads {
  readonly #database: Database;
  readonly #heads: QueryBatcher<DeviceKey, MailboxHead>;

  constructor(database: Database) {
    this.#database = database;
    this.#heads = new QueryBatcher(
      async (devices) => {
        const rows = await database.query<HeadRow>(heads, [devices]);
        return rows.map(headOf);
      },
      headReadsMax,
      database.timeoutMilliseconds,
    );
  }

  mailboxHead(device: DeviceKey): Promise<MailboxHead> {
    return this.#heads.add(device);
  }

  /** Cursor: a sequence. */
  async mails(device: DeviceKey, after: string, limit: number): Promise<Page<Mail>> {
    const rows = await this.#database.query<FoundMail>(mailsFrom, [
      device,
      after === '' ? 0 : Number(after),
      limit + 1,
    ]);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const next = rows.length > limit && last !== undefined ? String(last.sequence) : null;
    return { items: page.map(mailOf), next };
  }

  async receipt(device: DeviceKey, mailId: Uint8Array): Promise<Receipt | undefined> {
    const values = [device, viewOf(mailId), sequenceFrom(1, mailId)];
    const [row] = await this.#database.query<ReceiptRow>(receiptOf, values);
    return (
      row && {
        device,
        mailId: copyUuid(mailId),
        name: row.name,
        state: row.state,
        deliverAtMs: row.deliver_at_ms ?? undefined,
        queuedAtMs: row.queued_at_ms ?? undefined,
        expiresAtMs: row.expires_at_ms ?? undefined,
        fetchCount: row.fetch_count,
        firstFetchedAtMs: row.first_fetched_at_ms ?? undefined,
        requeueCount: row.requeue_count,
        settledAtMs: row.settled_at_ms ?? undefined,
      }
    );
  }

  /** Cursor: mail id and device of a letter in hexadecimal digits, as on LMDB. */
  async deadLetters(
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

  async deadLetter(device: DeviceKey, mailId: Uint8Array): Promise<DeadLetterWithPayload | undefined> {
    const { fleet_id, mail_id } = letterKey(device, mailId);
    const [row] = await this.#database.query<LetterRow & { payload: Buffer }>(letterOf, [
      fleet_id,
      mail_id,
      device,
    ]);
    return row && { ...letterFrom(row), payload: row.payload };
  }
}

function headOf({ size, ...mail }: HeadRow): MailboxHead {
  if (size === null || size === 0) return { size: 0, mail: undefined };
  if (mail.sequence === null) throw new Error('the head of a mailbox is missing');
  // A left join: all columns are present, or none.
  return { size, mail: mailOf(mail as FoundMail) };
}

function mailOf(row: FoundMail): Mail {
  return {
    id: row.mail_id,
    name: row.name,
    payload: row.payload,
    requeueCount: row.requeue_count,
    requeuesMax: row.requeues_max ?? undefined,
    fetchCount: row.fetch_count,
    acceptedAtMs: row.accepted_at_ms,
    expiresAtMs: row.expires_at_ms,
    firstFetchedAtMs: row.first_fetched_at_ms ?? undefined,
  };
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
