import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import type { BroadcastMail } from '../../../domain/mail/broadcast.ts';
import type { Receipt } from '../../../domain/mail/ended-mail.ts';
import type {
  DelayedMail,
  Mail,
  MailboxFront,
  MailboxHead,
  MailFront,
  Settle,
  SettleOutcome,
} from '../../../domain/mail/mail.ts';
import { keptFields } from '../../../domain/mail/mail-fields.ts';
import { sequenceFrom } from '../../../domain/mail/mail-sequence.ts';
import { mailPageBytesMax, ShardMail } from '../../../domain/mail/shard-mail.ts';
import type { Page } from '../../../domain/page.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Database, Row } from '../connection/database.ts';
import { QueryBatcher } from '../connection/query-batcher.ts';
import type { DatabaseTable } from '../schema/table.ts';
import { type BroadcastMarkRow, delayedMail, type MailRow, mail, receipt } from '../schema/tables.ts';
import type { Writer } from '../writes/writer.ts';
import {
  mailColumns,
  mailOfRow,
  type QueuedRow,
  readFronts,
  readHeads,
  type WantedFront,
} from './mailbox-heads.ts';

/** Statements of one kind in flight; devices that come meanwhile share the next one. */
const readsMax = 2;

const sizes = 'SELECT device, size FROM mailbox WHERE device = ANY($1::text[])';
/** `found` is how many there are of the page and the one behind it, whatever their bytes. */
const mailsFrom = `
  SELECT ${mailColumns}, t.found FROM (
    SELECT t.*, count(*) OVER ()::integer AS found,
      sum(octet_length(t.payload)) OVER (ORDER BY t.sequence) - octet_length(t.payload) AS bytes_before
    FROM (SELECT * FROM mail t WHERE t.device = $1 AND t.sequence > $2 ORDER BY t.sequence LIMIT $3) AS t
  ) AS t WHERE t.bytes_before < ${mailPageBytesMax} ORDER BY t.sequence`;
const delayedFrom = `
  SELECT ${delayedMail.columnsBut('device')},
    (SELECT count(*)::integer FROM delayed_mail WHERE device = $1) AS total
  FROM delayed_mail t WHERE device = $1 AND (deliver_at_ms, mail_id) > ($2::bigint, $3::bytea)
  ORDER BY deliver_at_ms, mail_id LIMIT $4`;
/** Columns that a receipt has of a mail; delayed mail has no counts. */
const keptOf = <R extends Row>(table: DatabaseTable<R>): string =>
  Object.entries(keptFields)
    .map(([name, { isOptional }]) =>
      name in table.shape.columns ? table.selected(name) : `${isOptional ? 'NULL' : '0'} AS "${name}"`,
    )
    .join(', ');
const queued = `
  SELECT 'queued' AS state, ${keptOf(mail)}, NULL::bigint AS "deliverAtMs", t.accepted_at_ms AS "queuedAtMs",
    t.expires_at_ms AS "expiresAtMs", NULL::bigint AS "settledAtMs", NULL::bytea AS reply
  FROM mail t WHERE t.device = k.device AND t.mail_id = k.mail_id`;
/** Looks first under the original sequence, and last through the whole mailbox: the first hit ends the search. */
const receiptsOf = `
  SELECT found.* FROM unnest($1::text[], $2::bytea[], $3::bigint[]) WITH ORDINALITY AS k (device, mail_id, sequence, ordinal)
  LEFT JOIN LATERAL (
    ${queued} AND t.sequence = k.sequence
    UNION ALL SELECT 'delayed', ${keptOf(delayedMail)}, t.deliver_at_ms, NULL, NULL, NULL, NULL
    FROM delayed_mail t WHERE t.device = k.device AND t.mail_id = k.mail_id
    UNION ALL SELECT t.state, ${keptOf(receipt)}, NULL, t.queued_at_ms, NULL, t.settled_at_ms, t.reply
    FROM receipt t WHERE t.device = k.device AND t.mail_id = k.mail_id
    UNION ALL ${queued} LIMIT 1
  ) AS found ON true
  ORDER BY k.ordinal`;
/** As in `receiptsOf`, the whole mailbox comes last. */
const payloadOf = `
  SELECT payload FROM (
    SELECT payload FROM mail WHERE device = $1 AND mail_id = $2 AND sequence = $3
    UNION ALL SELECT payload FROM delayed_mail WHERE device = $1 AND mail_id = $2
    UNION ALL SELECT payload FROM mail WHERE device = $1 AND mail_id = $2
  ) AS found LIMIT 1`;
const marksFrom = `
  SELECT device, mail_id FROM broadcast_mark WHERE broadcast = $1 AND device > $2 ORDER BY device LIMIT $3`;
/** As in `receiptsOf`, the whole mailbox comes last: only mail that was requeued needs it. */
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
const bytesOf = 'SELECT bytes FROM mail_bytes WHERE fleet_id = $1';
/** All null where there is none. */
type FoundReceipt = { [C in keyof Receipt]: Receipt[C] | null };
type MailName = Pick<Receipt, 'device' | 'mailId'>;
type FoundDelayed = DelayedMail & { total: number };
/** Digits of the delivery time in a cursor. */
const timeDigits = 12;

/** The mailboxes of a shard on PostgreSQL. */
export class PostgresMail extends ShardMail {
  readonly #database: Database;
  readonly #sizes: QueryBatcher<DeviceKey, number>;
  readonly #heads: QueryBatcher<DeviceKey, MailboxHead>;
  readonly #fronts: QueryBatcher<WantedFront, MailboxFront>;
  readonly #receipts: QueryBatcher<MailName, FoundReceipt | undefined>;

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
      (devices) => readHeads(database, devices),
      readsMax,
      database.timeoutMilliseconds,
    );
    this.#fronts = new QueryBatcher(
      (wanted) => readFronts(database, wanted),
      readsMax,
      database.timeoutMilliseconds,
    );
    // Whoever waits for an answer looks again and again.
    this.#receipts = new QueryBatcher(
      (mails) =>
        database.query<FoundReceipt>(receiptsOf, [
          mails.map(({ device }) => device),
          mails.map(({ mailId }) => mailId),
          mails.map(({ mailId }) => sequenceFrom(1, mailId)),
        ]),
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

  front(device: DeviceKey, front: MailFront): Promise<MailboxFront> {
    return this.#fronts.add({ device, ...front });
  }

  override settleThenHead(settle: Settle): Promise<SettleOutcome> {
    return this.settle({ ...settle, readsHead: true });
  }

  async list(device: DeviceKey, after: string, limit: number): Promise<Page<Mail>> {
    const rows = await this.#database.query<QueuedRow & { found: number }>(mailsFrom, [
      device,
      after === '' ? 0 : Number(after),
      limit + 1,
    ]);
    const page = mail.read(rows.slice(0, limit));
    const last = page.at(-1);
    const next = last !== undefined && last.found > page.length ? String(last.sequence) : null;
    return { items: page.map(({ found: _, ...row }) => mailOfRow(row)), next };
  }

  async listDelayed(
    device: DeviceKey,
    after: string,
    limit: number,
  ): Promise<Page<DelayedMail> & { total: number }> {
    const rows = await this.#database.query<FoundDelayed>(delayedFrom, [
      device,
      after === '' ? 0 : Number.parseInt(after.slice(0, timeDigits), 16),
      Buffer.from(after.slice(timeDigits), 'hex'),
      limit + 1,
    ]);
    const page = delayedMail.read(rows.slice(0, limit));
    const last = page.at(-1);
    return {
      items: page.map(({ total: _, ...delayed }) => delayed),
      next: rows.length > limit && last !== undefined ? delayedCursor(last) : null,
      total: rows[0]?.total ?? 0,
    };
  }

  async receipt(device: DeviceKey, mailId: Uint8Array): Promise<Receipt | undefined> {
    const found = await this.#receipts.add({ device, mailId: viewOf(mailId) });
    if (found === undefined || found.state === null) return undefined;
    const [row] = receipt.read([found] as const);
    const { deliverAtMs, expiresAtMs, settledAtMs, ...rest } = row;
    const times = {
      deliverAtMs: deliverAtMs ?? undefined,
      expiresAtMs: expiresAtMs ?? undefined,
      settledAtMs: settledAtMs ?? undefined,
    };
    return { ...(rest as Receipt), device, mailId: copyUuid(mailId), ...times };
  }

  async payload(device: DeviceKey, mailId: Uint8Array): Promise<Buffer | undefined> {
    const values = [device, viewOf(mailId), sequenceFrom(1, mailId)];
    const [row] = await this.#database.query<Pick<MailRow, 'payload'>>(payloadOf, values);
    return row?.payload;
  }

  async bytesOfFleet(fleetId: string): Promise<number> {
    const [row] = await this.#database.query<{ bytes: number }>(bytesOf, [fleetId]);
    return Math.max(0, row?.bytes ?? 0);
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

function delayedCursor({ deliverAtMs, id }: FoundDelayed): string {
  return deliverAtMs.toString(16).padStart(timeDigits, '0') + id.toString('hex');
}
