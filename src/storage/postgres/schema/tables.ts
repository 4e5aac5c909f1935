import type { DeviceKey } from '../../../core/identity.ts';
import type { DeathReason, MailEnd } from '../../../domain/mail/ended-mail.ts';
import type { RecordKind } from '../../../domain/records/record.ts';
import { type Column, DatabaseTable, type RowOf } from './table.ts';

const text: Column<string> = 'text';
const boolean: Column<boolean> = 'boolean';
const smallint: Column<number> = 'smallint';
const integer: Column<number> = 'integer';
const bigint: Column<number> = 'bigint';
const bytea: Column<Buffer> = 'bytea';
const deviceKey: Column<DeviceKey> = 'text';
const texts: Column<string[]> = 'jsonb';

function wordOf<W extends string>(): Column<W> {
  return 'text';
}

/** A column whose values may be absent. */
function orNull<V>(column: Column<V>): Column<V | null> {
  return column;
}

/** The tables in migrations.ts, and their rows. Absent values are null. */
export const device = new DatabaseTable({
  table: 'device',
  columns: {
    device: deviceKey,
    enabled: boolean,
    secret_digests: bytea,
    old_secret_until_ms: orNull(bigint),
    name: text,
    name_key: orNull(bytea),
    tags: texts,
    created_at_ms: bigint,
  },
  key: ['device'],
});
export type DeviceRow = RowOf<typeof device>;

export const deviceTag = new DatabaseTable({
  table: 'device_tag',
  columns: { fleet_id: text, tag: text, device: deviceKey },
  key: ['fleet_id', 'tag', 'device'],
});
export type DeviceTagRow = RowOf<typeof deviceTag>;

export const value = new DatabaseTable({
  table: 'value',
  columns: { name: text, number: bigint },
  key: ['name'],
});
export type ValueRow = RowOf<typeof value>;

export const activity = new DatabaseTable({
  table: 'activity',
  columns: { device: deviceKey, last_seen_ms: orNull(bigint), address: orNull(bytea), bucket: bigint },
  key: ['device'],
});
export type ActivityRow = RowOf<typeof activity>;

export const mailbox = new DatabaseTable({
  table: 'mailbox',
  columns: {
    device: deviceKey,
    size: integer,
    head: bigint,
    tail: bigint,
    waiting_since_ms: orNull(bigint),
    delayed: integer,
    settled: bytea,
  },
  key: ['device'],
});
export type MailboxRow = RowOf<typeof mailbox>;

export const mail = new DatabaseTable({
  table: 'mail',
  columns: {
    device: deviceKey,
    sequence: bigint,
    mail_id: bytea,
    name: text,
    payload: bytea,
    requeue_count: integer,
    requeues_max: orNull(smallint),
    fetch_count: integer,
    first_fetched_at_ms: orNull(bigint),
    accepted_at_ms: bigint,
    expires_at_ms: bigint,
  },
  key: ['device', 'sequence'],
});
export type MailRow = RowOf<typeof mail>;

export const delayedMail = new DatabaseTable({
  table: 'delayed_mail',
  columns: {
    device: deviceKey,
    mail_id: bytea,
    deliver_at_ms: bigint,
    ttl_seconds: bigint,
    mailbox_mails_max: integer,
    name: text,
    payload: bytea,
    requeues_max: orNull(smallint),
  },
  key: ['device', 'mail_id'],
});
export type DelayedMailRow = RowOf<typeof delayedMail>;

export const receipt = new DatabaseTable({
  table: 'receipt',
  columns: {
    device: deviceKey,
    mail_id: bytea,
    state: wordOf<MailEnd>(),
    name: text,
    queued_at_ms: orNull(bigint),
    fetch_count: integer,
    first_fetched_at_ms: orNull(bigint),
    requeue_count: integer,
    settled_at_ms: bigint,
  },
  key: ['device', 'mail_id'],
});
export type ReceiptRow = RowOf<typeof receipt>;

export const deadLetter = new DatabaseTable({
  table: 'dead_letter',
  columns: {
    fleet_id: text,
    mail_id: bytea,
    device: deviceKey,
    reason: wordOf<DeathReason>(),
    died_at_ms: bigint,
    name: text,
    payload: bytea,
    queued_at_ms: orNull(bigint),
    fetch_count: integer,
    first_fetched_at_ms: orNull(bigint),
    requeue_count: integer,
    requeues_max: orNull(smallint),
  },
  key: ['fleet_id', 'mail_id', 'device'],
});
export type DeadLetterRow = RowOf<typeof deadLetter>;

export const dedupe = new DatabaseTable({
  table: 'sent',
  columns: { once: bytea, device: deviceKey, mail_id: bytea },
  key: ['once', 'device'],
});
export type DedupeRow = RowOf<typeof dedupe>;

export const broadcastMark = new DatabaseTable({
  table: 'broadcast_mark',
  columns: { broadcast: bytea, device: deviceKey, mail_id: bytea },
  key: ['broadcast', 'device'],
});
export type BroadcastMarkRow = RowOf<typeof broadcastMark>;

export const idempotency = new DatabaseTable({
  table: 'idempotency',
  columns: { key: bytea, scope: text, digest: bytea, result: bytea },
  key: ['key', 'scope'],
});
export type IdempotencyRow = RowOf<typeof idempotency>;

/** Appending to the log uses a statement of its own. */
export const record = new DatabaseTable({
  table: 'record',
  columns: {
    position: bigint,
    stored_at_ms: bigint,
    id: bytea,
    device: deviceKey,
    kind: wordOf<RecordKind>(),
    schema: text,
    payload: bytea,
    own_at_ms: orNull(bigint),
    recorded_at_ms: orNull(bigint),
  },
  key: ['position', 'stored_at_ms'],
});
export type RecordRow = RowOf<typeof record>;

/** Changes of devices add to it with a statement of their own. */
export const fleetCount = new DatabaseTable({
  table: 'fleet_count',
  columns: { fleet_id: text, devices: bigint, disabled: bigint },
  key: ['fleet_id'],
});
export type FleetCountRow = RowOf<typeof fleetCount>;

/** For copies; nodes write what they share with statements of their own. */
export const storedRowTable = new DatabaseTable({
  table: 'stored',
  columns: { store: text, name: text, key: bytea, value: bytea, version: bigint, at_ms: bigint },
  key: ['store', 'name', 'key'],
});
export type StoredRow = RowOf<typeof storedRowTable>;

export const audit = new DatabaseTable({
  table: 'audit',
  columns: { number: bigint, book: smallint, owner: text, at_ms: bigint, entry: text },
  key: ['number'],
});
export type AuditRow = RowOf<typeof audit>;
