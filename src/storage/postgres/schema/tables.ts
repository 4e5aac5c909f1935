import type { DeviceKey } from '../../../core/identity.ts';
import { deviceFields } from '../../../domain/devices/device-fields.ts';
import {
  delayedFields,
  letterFields,
  mailboxFields,
  mailFields,
  receiptFields,
  replyFields,
} from '../../../domain/mail/mail-fields.ts';
import type { RecordKind } from '../../../domain/records/record.ts';
import { type Column, columnsOf, DatabaseTable, type RowOf } from './table.ts';

const text: Column<string> = { type: 'text' };
/** Text that sorts by byte. */
const idText: Column<string> = { type: 'text', isKey: true };
const boolean: Column<boolean> = { type: 'boolean' };
const smallint: Column<number> = { type: 'smallint' };
const integer: Column<number> = { type: 'integer' };
const bigint: Column<number> = { type: 'bigint' };
const bytea: Column<Buffer> = { type: 'bytea' };
const deviceKey: Column<DeviceKey> = { type: 'text', isKey: true };

function wordOf<W extends string>(): Column<W> {
  return { type: 'text' };
}

/** A column whose values may be absent. */
function optional<V>(column: Column<V>): Column<V | undefined> {
  return { ...column, isOptional: true };
}

/** Likewise, and read as null. */
function orNull<V>(column: Column<V>): Column<V | null> {
  return { ...column, isNullable: true };
}

const { name: deviceName, ...otherFields } = columnsOf(deviceFields);
/**
 * Tables that migrations.ts creates, and their rows. A device's, a mail's and what comes of it have the fields of their
 * records.
 */
export const device = new DatabaseTable({
  table: 'device',
  columns: {
    device: deviceKey,
    enabled: boolean,
    /** SHA-256 digests, newest first, concatenated. */
    secretDigests: bytea,
    oldSecretUntilMs: optional(bigint),
    ...{ name: deviceName },
    /** Prefix of the name in UTF-8, for searches; absent for none. */
    nameKey: optional(bytea),
    ...otherFields,
  },
  key: ['device'],
});
export type DeviceRow = RowOf<typeof device>;

export const deviceTag = new DatabaseTable({
  table: 'device_tag',
  columns: { fleet_id: idText, tag: idText, device: deviceKey },
  key: ['fleet_id', 'tag', 'device'],
});
export type DeviceTagRow = RowOf<typeof deviceTag>;

/**
 * Single values: 'forgotten', the time of the latest idempotency key that was dropped; 'moved', where the last record
 * stands that came from the log of another shard; 'database' and 'databases', the identity of this shard in the store
 * (shard-identity.ts); and cursors of the log's trimmer by the rules it ran with (record-trimmer.ts).
 */
export const value = new DatabaseTable({
  table: 'value',
  columns: { name: text, number: bigint },
  key: ['name'],
});
export type ValueRow = RowOf<typeof value>;

/** One row per device; `bucket` is of when it was last seen, 0 for never. */
export const activity = new DatabaseTable({
  table: 'activity',
  columns: { device: deviceKey, last_seen_ms: orNull(bigint), address: orNull(bytea), bucket: bigint },
  key: ['device'],
});
export type ActivityRow = RowOf<typeof activity>;

const { size, head, tail, waitingSinceMs, settled } = columnsOf(mailboxFields);
/** One row per device: whoever changes the device or its mail locks it first, in order of device. */
export const mailbox = new DatabaseTable({
  table: 'mailbox',
  columns: {
    device: deviceKey,
    ...{ size, head, tail, waitingSinceMs, delayed: integer, settled },
  },
  key: ['device'],
});
export type MailboxRow = RowOf<typeof mailbox>;

const { id, name, payload, requeueCount, requeuesMax, fetchCount, firstFetchedAtMs } = columnsOf(mailFields);
export const mail = new DatabaseTable({
  table: 'mail',
  columns: {
    device: deviceKey,
    sequence: bigint,
    ...{ id, name, payload, requeueCount, requeuesMax, fetchCount, firstFetchedAtMs },
    ...columnsOf(mailFields),
  },
  key: ['device', 'sequence'],
  names: { id: 'mail_id' },
});
export type MailRow = RowOf<typeof mail>;

export const delayedMail = new DatabaseTable({
  table: 'delayed_mail',
  columns: { device: deviceKey, ...columnsOf(delayedFields) },
  key: ['device', 'id'],
  names: { id: 'mail_id' },
});
export type DelayedMailRow = RowOf<typeof delayedMail>;

/** One row per device that has mail to be replaced (replaceable-mails.ts); the lock of its mailbox is of it, too. */
export const replaceable = new DatabaseTable({
  table: 'replaceable',
  columns: { device: deviceKey, mails: bytea },
  key: ['device'],
});
export type ReplaceableRow = RowOf<typeof replaceable>;

const { state, queuedAtMs, fetchCount: receiptFetchCount } = columnsOf(receiptFields);
export const receipt = new DatabaseTable({
  table: 'receipt',
  columns: {
    device: deviceKey,
    mailId: bytea,
    ...{ state, name, queuedAtMs, fetchCount: receiptFetchCount, firstFetchedAtMs },
    ...columnsOf(receiptFields),
    ...columnsOf(replyFields),
  },
  key: ['device', 'mailId'],
});
export type ReceiptRow = RowOf<typeof receipt>;

export const deadLetter = new DatabaseTable({
  table: 'dead_letter',
  columns: { fleetId: idText, mailId: bytea, device: deviceKey, ...columnsOf(letterFields) },
  key: ['fleetId', 'mailId', 'device'],
});
export type DeadLetterRow = RowOf<typeof deadLetter>;

/** Dedupe keys of mail (Enqueue.dedupeKey). */
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

/** UUIDv7 keys sort by time: partitions are dropped whole. */
export const idempotency = new DatabaseTable({
  table: 'idempotency',
  columns: { key: bytea, scope: idText, digest: bytea, result: bytea },
  key: ['key', 'scope'],
});
export type IdempotencyRow = RowOf<typeof idempotency>;

/** One row per device that has queues of its own (device-queues.ts); the lock of its mailbox is of it, too. */
export const deviceQueue = new DatabaseTable({
  table: 'device_queue',
  columns: { device: deviceKey, queues: bytea },
  key: ['device'],
});
export type DeviceQueueRow = RowOf<typeof deviceQueue>;

/** Appending uses a statement of its own. */
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
    /** When it was itself stored, if it came from the log of another shard and stands here by the time of newer ones. */
    own_at_ms: orNull(bigint),
    /** When the device recorded it, where it said so (D25). */
    recorded_at_ms: orNull(bigint),
    /** The mail that a reply answers (D31). */
    mail_id: { ...orNull(bytea), since: 3 },
  },
  key: ['position', 'stored_at_ms'],
});
export type RecordRow = RowOf<typeof record>;

/** Changes of devices add to it with a statement of their own. */
export const fleetCount = new DatabaseTable({
  table: 'fleet_count',
  columns: { fleet_id: idText, devices: bigint, disabled: bigint },
  key: ['fleet_id'],
});
export type FleetCountRow = RowOf<typeof fleetCount>;

/** Null for a removed row, which copies never see. */
const removable: Column<Buffer> = { type: 'bytea', isNullable: true };

/**
 * In the first database only, for all nodes: declarations, and cursors of jobs, in the layout of their stores. A
 * replicated store retains removed rows for a while; each of its changes has a version, whose row the writer locks.
 * Nodes write with statements of their own.
 */
export const storedRowTable = new DatabaseTable({
  table: 'stored',
  columns: { store: idText, name: idText, key: bytea, value: removable, version: bigint, at_ms: bigint },
  key: ['store', 'name', 'key'],
});
export type StoredRow = RowOf<typeof storedRowTable>;

/**
 * The audit log, in the same database. The entry is JSON as text: input it repeats may hold characters that the JSON
 * types reject. `book` is an index in auditBooks, `owner` whose share of the book it uses.
 */
export const audit = new DatabaseTable({
  table: 'audit',
  columns: { number: bigint, book: smallint, owner: idText, at_ms: bigint, entry: text },
  key: ['number'],
});
export type AuditRow = RowOf<typeof audit>;
