import type { DeviceKey } from '../../../core/identity.ts';
import type { DeathReason, MailEnd } from '../../../domain/mail/ended-mail.ts';
import type { RecordKind } from '../../../domain/records/record.ts';
import { DatabaseTable } from './table.ts';

/** Rows of the tables in migrations.ts. Absent values are null. */
export type DeviceRow = {
  device: DeviceKey;
  enabled: boolean;
  secret_digests: Buffer;
  old_secret_until_ms: number | null;
  name: string;
  name_key: Buffer | null;
  tags: string[];
  created_at_ms: number;
};

export const device = new DatabaseTable<DeviceRow>({
  table: 'device',
  columns: {
    device: 'text',
    enabled: 'boolean',
    secret_digests: 'bytea',
    old_secret_until_ms: 'bigint',
    name: 'text',
    name_key: 'bytea',
    tags: 'jsonb',
    created_at_ms: 'bigint',
  },
  key: ['device'],
});

export type DeviceTagRow = { fleet_id: string; tag: string; device: DeviceKey };

export const deviceTag = new DatabaseTable<DeviceTagRow>({
  table: 'device_tag',
  columns: { fleet_id: 'text', tag: 'text', device: 'text' },
  key: ['fleet_id', 'tag', 'device'],
});

export type ValueRow = { name: string; number: number };

export const value = new DatabaseTable<ValueRow>({
  table: 'value',
  columns: { name: 'text', number: 'bigint' },
  key: ['name'],
});

export type ActivityRow = {
  device: DeviceKey;
  last_seen_ms: number | null;
  address: Buffer | null;
  bucket: number;
};

export const activity = new DatabaseTable<ActivityRow>({
  table: 'activity',
  columns: { device: 'text', last_seen_ms: 'bigint', address: 'bytea', bucket: 'bigint' },
  key: ['device'],
});

export type MailboxRow = {
  device: DeviceKey;
  size: number;
  head: number;
  tail: number;
  waiting_since_ms: number | null;
  delayed: number;
  settled: Buffer;
};

export const mailbox = new DatabaseTable<MailboxRow>({
  table: 'mailbox',
  columns: {
    device: 'text',
    size: 'integer',
    head: 'bigint',
    tail: 'bigint',
    waiting_since_ms: 'bigint',
    delayed: 'integer',
    settled: 'bytea',
  },
  key: ['device'],
});

export type MailRow = {
  device: DeviceKey;
  sequence: number;
  mail_id: Buffer;
  name: string;
  payload: Buffer;
  requeue_count: number;
  requeues_max: number | null;
  fetch_count: number;
  first_fetched_at_ms: number | null;
  accepted_at_ms: number;
  expires_at_ms: number;
};

export const mail = new DatabaseTable<MailRow>({
  table: 'mail',
  columns: {
    device: 'text',
    sequence: 'bigint',
    mail_id: 'bytea',
    name: 'text',
    payload: 'bytea',
    requeue_count: 'integer',
    requeues_max: 'smallint',
    fetch_count: 'integer',
    first_fetched_at_ms: 'bigint',
    accepted_at_ms: 'bigint',
    expires_at_ms: 'bigint',
  },
  key: ['device', 'sequence'],
});

export type DelayedMailRow = {
  device: DeviceKey;
  mail_id: Buffer;
  deliver_at_ms: number;
  ttl_seconds: number;
  mailbox_mails_max: number;
  name: string;
  payload: Buffer;
  requeues_max: number | null;
};

export const delayedMail = new DatabaseTable<DelayedMailRow>({
  table: 'delayed_mail',
  columns: {
    device: 'text',
    mail_id: 'bytea',
    deliver_at_ms: 'bigint',
    ttl_seconds: 'bigint',
    mailbox_mails_max: 'integer',
    name: 'text',
    payload: 'bytea',
    requeues_max: 'smallint',
  },
  key: ['device', 'mail_id'],
});

export type ReceiptRow = {
  device: DeviceKey;
  mail_id: Buffer;
  state: MailEnd;
  name: string;
  queued_at_ms: number | null;
  fetch_count: number;
  first_fetched_at_ms: number | null;
  requeue_count: number;
  settled_at_ms: number;
};

export const receipt = new DatabaseTable<ReceiptRow>({
  table: 'receipt',
  columns: {
    device: 'text',
    mail_id: 'bytea',
    state: 'text',
    name: 'text',
    queued_at_ms: 'bigint',
    fetch_count: 'integer',
    first_fetched_at_ms: 'bigint',
    requeue_count: 'integer',
    settled_at_ms: 'bigint',
  },
  key: ['device', 'mail_id'],
});

export type DeadLetterRow = {
  fleet_id: string;
  mail_id: Buffer;
  device: DeviceKey;
  reason: DeathReason;
  died_at_ms: number;
  name: string;
  payload: Buffer;
  queued_at_ms: number | null;
  fetch_count: number;
  first_fetched_at_ms: number | null;
  requeue_count: number;
  requeues_max: number | null;
};

export const deadLetter = new DatabaseTable<DeadLetterRow>({
  table: 'dead_letter',
  columns: {
    fleet_id: 'text',
    mail_id: 'bytea',
    device: 'text',
    reason: 'text',
    died_at_ms: 'bigint',
    name: 'text',
    payload: 'bytea',
    queued_at_ms: 'bigint',
    fetch_count: 'integer',
    first_fetched_at_ms: 'bigint',
    requeue_count: 'integer',
    requeues_max: 'smallint',
  },
  key: ['fleet_id', 'mail_id', 'device'],
});

export type DedupeRow = { once: Buffer; device: DeviceKey; mail_id: Buffer };

export const dedupe = new DatabaseTable<DedupeRow>({
  table: 'sent',
  columns: { once: 'bytea', device: 'text', mail_id: 'bytea' },
  key: ['once', 'device'],
});

export type BroadcastMarkRow = { broadcast: Buffer; device: DeviceKey; mail_id: Buffer };

export const broadcastMark = new DatabaseTable<BroadcastMarkRow>({
  table: 'broadcast_mark',
  columns: { broadcast: 'bytea', device: 'text', mail_id: 'bytea' },
  key: ['broadcast', 'device'],
});

export type IdempotencyRow = { key: Buffer; scope: string; digest: Buffer; result: Buffer };

export const idempotency = new DatabaseTable<IdempotencyRow>({
  table: 'idempotency',
  columns: { key: 'bytea', scope: 'text', digest: 'bytea', result: 'bytea' },
  key: ['key', 'scope'],
});

export type RecordRow = {
  position: number;
  stored_at_ms: number;
  id: Buffer;
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
  payload: Buffer;
  own_at_ms: number | null;
  recorded_at_ms: number | null;
};

/** Appending to the log uses a statement of its own. */
export const record = new DatabaseTable<RecordRow>({
  table: 'record',
  columns: {
    position: 'bigint',
    stored_at_ms: 'bigint',
    id: 'bytea',
    device: 'text',
    kind: 'text',
    schema: 'text',
    payload: 'bytea',
    own_at_ms: 'bigint',
    recorded_at_ms: 'bigint',
  },
  key: ['position', 'stored_at_ms'],
});

export type FleetCountRow = { fleet_id: string; devices: number; disabled: number };

/** Changes of devices add to it with a statement of their own. */
export const fleetCount = new DatabaseTable<FleetCountRow>({
  table: 'fleet_count',
  columns: { fleet_id: 'text', devices: 'bigint', disabled: 'bigint' },
  key: ['fleet_id'],
});

export type StoredRow = {
  store: string;
  name: string;
  key: Buffer;
  value: Buffer;
  version: number;
  at_ms: number;
};

/** For copies; nodes write what they share with statements of their own. */
export const storedRowTable = new DatabaseTable<StoredRow>({
  table: 'stored',
  columns: { store: 'text', name: 'text', key: 'bytea', value: 'bytea', version: 'bigint', at_ms: 'bigint' },
  key: ['store', 'name', 'key'],
});

export type AuditRow = { number: number; book: number; owner: string; at_ms: number; entry: string };

export const audit = new DatabaseTable<AuditRow>({
  table: 'audit',
  columns: { number: 'bigint', book: 'smallint', owner: 'text', at_ms: 'bigint', entry: 'text' },
  key: ['number'],
});
