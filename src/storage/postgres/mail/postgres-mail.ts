import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import type { BroadcastMail } from '../../../domain/mail/broadcast.ts';
import type { Receipt } from '../../../domain/mail/ended-mail.ts';
import type { DelayedMail, Mail, MailboxHead } from '../../../domain/mail/mail.ts';
import { sequenceFrom } from '../../../domain/mail/mail-sequence.ts';
import { ShardMail } from '../../../domain/mail/shard-mail.ts';
import type { Page } from '../../../domain/page.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Database } from '../connection/database.ts';
import { QueryBatcher } from '../connection/query-batcher.ts';
import type { BroadcastMarkRow, DelayedMailRow, MailRow } from '../schema/tables.ts';
import type { Writer } from '../writes/writer.ts';

/** Statements of one kind in flight; devices that come meanwhile share the next one. */
const readsMax = 2;

const mailColumns = `t.sequence, t.mail_id, t.name, t.payload, t.requeue_count, t.requeues_max, t.fetch_count,
  t.first_fetched_at_ms, t.accepted_at_ms, t.expires_at_ms`;
const sizes = 'SELECT device, size FROM mailbox WHERE device = ANY($1::text[])';
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
const delayedFrom = `
  SELECT mail_id, name, payload, deliver_at_ms, ttl_seconds,
    (SELECT count(*)::integer FROM delayed_mail WHERE device = $1) AS total
  FROM delayed_mail WHERE device = $1 AND (deliver_at_ms, mail_id) > ($2::bigint, $3::bytea)
  ORDER BY deliver_at_ms, mail_id LIMIT $4`;
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
/** As in `receiptOf`, the whole mailbox comes last. */
const payloadOf = `
  SELECT payload FROM (
    SELECT payload FROM mail WHERE device = $1 AND mail_id = $2 AND sequence = $3
    UNION ALL SELECT payload FROM delayed_mail WHERE device = $1 AND mail_id = $2
    UNION ALL SELECT payload FROM mail WHERE device = $1 AND mail_id = $2
  ) AS found LIMIT 1`;
const marksFrom = `
  SELECT device, mail_id FROM broadcast_mark WHERE broadcast = $1 AND device > $2 ORDER BY device LIMIT $3`;
/** As in `receiptOf`, the whole mailbox comes last: only mail that was requeued needs it. */
const statesOf = `
  SELECT coalesce(found.state, 'unknown') AS state, coalesce(found.fetch_count, 0) AS fetch_count
  FROM unnest($1::text[], $2::bytea[], $3::bigint[]) WITH ORDINALITY AS k (device, mail_id, sequence, ordinal)
  LEFT JOIN LATERAL (
    SELECT state, fetch_count FROM receipt r WHERE r.device = k.device AND r.mail_id = k.mail_id
    UNION ALL SELECT 'queued', fetch_count FROM mail m
    WHERE m.device = k.device AND m.sequence = k.sequence AND m.mail_id = k.mail_id
    UNION ALL SELECT 'delayed', 0 FROM delayed_mail d WHERE d.device = k.device AND d.mail_id = k.mail_id
    UNION ALL SELECT 'queued', fetch_count FROM mail m WHERE m.device = k.device AND m.mail_id = k.mail_id
    LIMIT 1
  ) AS found ON true
  ORDER BY k.ordinal`;
type FoundMail = Omit<MailRow, 'device'>;
type HeadRow = { size: number | null } & { [C in keyof FoundMail]: FoundMail[C] | null };
type FoundDelayed = Pick<DelayedMailRow, 'mail_id' | 'name' | 'payload' | 'deliver_at_ms' | 'ttl_seconds'>;
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
/** Digits of the delivery time in a cursor. */
const timeDigits = 12;

/** The mailboxes of a shard on PostgreSQL. */
export class PostgresMail extends ShardMail {
  readonly #database: Database;
  readonly #sizes: QueryBatcher<DeviceKey, number>;
  readonly #heads: QueryBatcher<DeviceKey, MailboxHead>;

  constructor(database: Database, writer: Writer) {
    super(writer);
    this.#database = database;
    this.#sizes = new QueryBatcher(
      async (devices) => {
        const rows = await database.query<{ device: DeviceKey; size: number }>(sizes, [
          [...new Set(devices)],
        ]);
        const found = new Map(rows.map(({ device, size }) => [device, size]));
        return devices.map((device) => found.get(device) ?? 0);
      },
      readsMax,
      database.timeoutMilliseconds,
    );
    this.#heads = new QueryBatcher(
      async (devices) => {
        const rows = await database.query<HeadRow>(heads, [devices]);
        return rows.map(headOf);
      },
      readsMax,
      database.timeoutMilliseconds,
    );
  }

  size(device: DeviceKey): Promise<number> {
    return this.#sizes.add(device);
  }

  head(device: DeviceKey): Promise<MailboxHead> {
    return this.#heads.add(device);
  }

  async list(device: DeviceKey, after: string, limit: number): Promise<Page<Mail>> {
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

  async listDelayed(
    device: DeviceKey,
    after: string,
    limit: number,
  ): Promise<Page<DelayedMail> & { total: number }> {
    const rows = await this.#database.query<FoundDelayed & { total: number }>(delayedFrom, [
      device,
      after === '' ? 0 : Number.parseInt(after.slice(0, timeDigits), 16),
      Buffer.from(after.slice(timeDigits), 'hex'),
      limit + 1,
    ]);
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    return {
      items: page.map((row) => ({
        id: row.mail_id,
        name: row.name,
        payload: row.payload,
        deliverAtMs: row.deliver_at_ms,
        ttlSeconds: row.ttl_seconds,
      })),
      next: rows.length > limit && last !== undefined ? delayedCursor(last) : null,
      total: rows[0]?.total ?? 0,
    };
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

  async payload(device: DeviceKey, mailId: Uint8Array): Promise<Buffer | undefined> {
    const values = [device, viewOf(mailId), sequenceFrom(1, mailId)];
    const [row] = await this.#database.query<Pick<MailRow, 'payload'>>(payloadOf, values);
    return row?.payload;
  }

  async ofBroadcast(broadcast: Uint8Array, after: string, limit: number): Promise<Page<BroadcastMail>> {
    const marks = await this.#database.query<Pick<BroadcastMarkRow, 'device' | 'mail_id'>>(marksFrom, [
      viewOf(broadcast),
      after,
      limit + 1,
    ]);
    const page = marks.slice(0, limit);
    const states = await this.#database.query<Pick<Receipt, 'state'> & { fetch_count: number }>(statesOf, [
      page.map(({ device }) => device),
      page.map(({ mail_id }) => mail_id),
      page.map(({ mail_id }) => sequenceFrom(1, mail_id)),
    ]);
    return {
      items: page.map(({ device, mail_id: mailId }, index) => ({
        device,
        mailId,
        state: states[index]?.state ?? 'unknown',
        fetchCount: states[index]?.fetch_count ?? 0,
      })),
      next: marks.length > limit ? (page.at(-1)?.device ?? null) : null,
    };
  }
}

function delayedCursor({ deliver_at_ms, mail_id }: FoundDelayed): string {
  return deliver_at_ms.toString(16).padStart(timeDigits, '0') + mail_id.toString('hex');
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
