import { type DeviceKey, deviceIdOf, deviceKeyLength, deviceKeyOf } from '../../../core/identity.ts';
import type { DeviceCredentials, DeviceStatus, FleetCounts } from '../../../domain/devices/device.ts';
import { matches } from '../../../domain/devices/device-filter.ts';
import type {
  ConnectedDevice,
  DeviceFilter,
  DeviceIndex,
  DeviceQuery,
  FoundDevice,
  FoundDevices,
  SeenCount,
} from '../../../domain/devices/device-query.ts';
import type { BroadcastProgress } from '../../../domain/mail/broadcast.ts';
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterWithPayload,
  Receipt,
} from '../../../domain/mail/ended-mail.ts';
import type { Mail, MailboxHead } from '../../../domain/mail/mail.ts';
import type { LogPage } from '../../../domain/records/record.ts';
import type { ChangeToken, Page } from '../../../domain/shard.ts';
import { indexedOf, readCounts } from '../devices/device-index.ts';
import { countEntries, countSeen, searchDevices } from '../devices/device-search.ts';
import type { DeviceVersions } from '../devices/device-versions.ts';
import { digestOfTag } from '../devices/tag-index.ts';
import type { Environment } from '../environment/environment.ts';
import { decodeSeen } from '../layout/activity-record.ts';
import { decodeCredentials, decodeDevice } from '../layout/device-record.ts';
import {
  keyOfDevice,
  keyOfMail,
  keyOfTag,
  readDevice,
  readSequence,
  sequenceKey,
  tagDigestBytes,
} from '../layout/keys.ts';
import { decodeMail } from '../layout/mail-record.ts';
import { readHead, readSize } from '../layout/mailbox-record.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import { openTables, type Tables } from '../layout/tables.ts';
import { endOfLog } from '../log/ingest-log.ts';
import { readLogPage } from '../log/log-page.ts';
import { positionAt, reorderedUntilOf, timeAt } from '../log/log-times.ts';
import { storedLogBytes } from '../log/log-trim-state.ts';
import { prunable } from '../mail/broadcast-mail.ts';
import { dedupeKeysBefore } from '../mail/dedupe-keys.ts';
import { readDeadLetter, readDeadLetters, readReceipt } from '../mail/read-dead-letters.ts';

/** Sorts after every device id. */
const afterDevices = '~'.repeat(10);
const neverSeen = { lastSeenMs: undefined, address: undefined };

/** A shard's reads, in place on whatever thread asks. */
export class ShardReader {
  readonly #environment: Environment;
  readonly #versions: DeviceVersions;
  readonly #tables: Tables;
  /** The last read of the log that found nothing: its commit count, and its position. */
  #nothingAfterCommits: number | undefined;
  #nothingFrom = 0;
  /** The log's end at that commit count. */
  #endAfterCommits: number | undefined;
  #end = 0;

  constructor(environment: Environment, versions: DeviceVersions) {
    this.#environment = environment;
    this.#versions = versions;
    this.#tables = openTables(environment);
  }

  changeToken(device: DeviceKey): ChangeToken {
    return this.#versions.changeToken(device);
  }

  credentials(device: DeviceKey): DeviceCredentials | undefined {
    this.#environment.refresh();
    const bytes = this.#tables.devices.getBinaryFast(keyOfDevice(device));
    return bytes && decodeCredentials(bytes);
  }

  mailboxSize(device: DeviceKey): number {
    this.#environment.refresh();
    return this.#mailboxSize(device);
  }

  mailboxHead(device: DeviceKey): MailboxHead {
    this.#environment.refresh();
    const mailbox = this.#tables.mailboxes.getBinaryFast(keyOfDevice(device));
    const size = mailbox === undefined ? 0 : readSize(mailbox);
    if (mailbox === undefined || size === 0) return { size: 0, mail: undefined };
    const bytes = this.#tables.mail.getBinaryFast(keyOfMail(device, readHead(mailbox)));
    if (bytes === undefined) throw new Error('the head of a mailbox is missing');
    return { size, mail: decodeMail(bytes) };
  }

  device(device: DeviceKey): DeviceStatus | undefined {
    this.#environment.refresh();
    const bytes = this.#tables.devices.getBinary(keyOfDevice(device));
    return bytes && this.#status(device, bytes);
  }

  findDevices(query: DeviceQuery): FoundDevices {
    this.#environment.refresh();
    return searchDevices(this.#tables, query, (device) => this.#readSound(device));
  }

  /** Filters devices that exist and match. */
  matching(devices: readonly ConnectedDevice[], filter: DeviceFilter): FoundDevice[] {
    this.#environment.refresh();
    return devices.flatMap(({ device, position }) => {
      const status = this.#readSound(device);
      return status !== undefined && matches(status, filter) ? [{ ...status, position }] : [];
    });
  }

  countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): number {
    this.#environment.refresh();
    return countEntries(this.#tables, by, filter, max);
  }

  fleetCounts(fleetId: string): FleetCounts {
    this.#environment.refresh();
    return readCounts(this.#tables.counts, fleetId);
  }

  countSeen(filter: DeviceFilter, after: string, scanMax: number): SeenCount {
    this.#environment.refresh();
    return countSeen(this.#tables, filter, after, scanMax);
  }

  deviceIds(fleetId: string, after: string, limit: number): string[] {
    this.#environment.refresh();
    const keys = [...this.#tables.devices.getKeys({ ...rangeOf(fleetId, after), limit })];
    return keys.map((key) => deviceIdOf(readDevice(key, 0)));
  }

  /** Checks each device, since tags may share a digest. */
  devicesWithTag(fleetId: string, tag: string, after: string, limit: number): string[] {
    this.#environment.refresh();
    const digest = digestOfTag(tag);
    const start = Buffer.from(`${digest}${fleetId}${after}\0`, 'latin1');
    const end = keyOfTag(digest, deviceKeyOf(fleetId, afterDevices));
    const found: string[] = [];
    for (const key of this.#tables.tags.getKeys({ start, end })) {
      const device = readDevice(key, tagDigestBytes);
      const bytes = this.#tables.devices.getBinaryFast(keyOfDevice(device));
      if (bytes !== undefined && indexedOf(bytes).tags.includes(tag)) found.push(deviceIdOf(device));
      if (found.length === limit) break;
    }
    return found;
  }

  mails(device: DeviceKey, after: string, limit: number): Page<Mail> {
    this.#environment.refresh();
    const start = Buffer.from(keyOfMail(device, after === '' ? 0 : Number(after) + 1));
    const end = Buffer.from(keyOfMail(device, 2 ** 48 - 1));
    const entries = [...this.#tables.mail.getRange({ start, end, limit: limit + 1 })];
    const page = entries.slice(0, limit);
    const last = page.at(-1);
    const next = entries.length > limit && last ? String(readSequence(last.key, deviceKeyLength)) : null;
    const jumpsMs = storedJumpsMs(this.#tables.times);
    const items = page.map(({ value }) => {
      const mail = decodeMail(value);
      const acceptedAtMs = mail.acceptedAtMs + jumpsMs;
      return { ...mail, acceptedAtMs, expiresAtMs: mail.expiresAtMs + jumpsMs };
    });
    return { items, next };
  }

  receipt(device: DeviceKey, mailId: Uint8Array): Receipt | undefined {
    this.#environment.refresh();
    return readReceipt(this.#tables, device, mailId);
  }

  deadLetters(fleetId: string, filter: DeadLetterFilter, after: string, limit: number): Page<DeadLetter> {
    this.#environment.refresh();
    return readDeadLetters(this.#tables, fleetId, filter, after, limit);
  }

  deadLetter(device: DeviceKey, mailId: Uint8Array): DeadLetterWithPayload | undefined {
    this.#environment.refresh();
    return readDeadLetter(this.#tables, device, mailId);
  }

  /**
   * Reads a page. It is polled every few milliseconds for every shard, so without new commits LMDB is not accessed.
   */
  records(from: number): LogPage {
    const { commits } = this.#environment;
    if (commits === this.#nothingAfterCommits && from === this.#nothingFrom) {
      return { records: [], next: from, damaged: false };
    }
    this.#environment.refresh();
    const page = readLogPage(this.#tables, from);
    if (page.next === from) {
      this.#nothingAfterCommits = commits;
      this.#nothingFrom = from;
    }
    return page;
  }

  /** Whether `pruneDedupeKeys` would find anything. */
  hasDedupeKeys(before: Uint8Array | undefined): boolean {
    this.#environment.refresh();
    for (const _ of this.#tables.sent.getKeys({ ...dedupeKeysBefore(before), limit: 1 })) return true;
    return false;
  }

  /** Whether `pruneBroadcasts` would find anything. */
  hasPrunableBroadcasts(active: readonly BroadcastProgress[]): boolean {
    this.#environment.refresh();
    for (const _ of prunable(this.#tables.broadcast, active, 1)) return true;
    return false;
  }

  /** The log's end. It is polled for every action, and read once per commit. */
  logEnd(): number {
    const { commits } = this.#environment;
    if (commits === this.#endAfterCommits) return this.#end;
    this.#environment.refresh();
    this.#end = endOfLog(this.#tables.log);
    this.#endAfterCommits = commits;
    // A commit is visible before its own thread has counted it: a caller that got this end must find the records
    // before it, or would take them for trimmed.
    if (this.#end > this.#nothingFrom) this.#nothingAfterCommits = undefined;
    return this.#end;
  }

  positionAt(timeMs: number): number {
    this.#environment.refresh();
    return positionAt(this.#tables, timeMs);
  }

  timeAt(position: number): number | undefined {
    this.#environment.refresh();
    return timeAt(this.#tables, position);
  }

  reorderedUntil(): number {
    this.#environment.refresh();
    return reorderedUntilOf(this.#tables.times);
  }

  /** Bytes of limited fleets' records, as the owner last counted them. */
  logBytes(): ReadonlyMap<string, number> {
    this.#environment.refresh();
    return storedLogBytes(this.#tables.times);
  }

  /** Whether the sweeper has work stuck so many stuck mails, so that an idle shard commits nothing. */
  hasDue(lifeMs: number, stuck: { expiry: number; due: number }, trustedMs: number): boolean {
    this.#environment.refresh();
    for (const _ of this.#tables.retiring.getKeys({ end: sequenceKey(trustedMs), limit: 1 })) return true;
    const end = sequenceKey(lifeMs);
    const has = (table: 'expiry' | 'due'): boolean => {
      const limit = stuck[table] + 1;
      return [...this.#tables[table].getKeys({ end, limit })].length === limit;
    };
    return has('expiry') || has('due');
  }

  #mailboxSize(device: DeviceKey): number {
    const bytes = this.#tables.mailboxes.getBinaryFast(keyOfDevice(device));
    return bytes === undefined ? 0 : readSize(bytes);
  }

  /** Reads a device; a damaged one counts as missing, so that it does not break a whole page. */
  #readSound(device: DeviceKey): DeviceStatus | undefined {
    const bytes = this.#tables.devices.getBinary(keyOfDevice(device));
    try {
      return bytes && this.#status(device, bytes);
    } catch {
      return undefined;
    }
  }

  #status(device: DeviceKey, bytes: Buffer): DeviceStatus {
    const decoded = decodeDevice(device, bytes);
    const seen = this.#tables.activity.getBinaryFast(keyOfDevice(device));
    const { lastSeenMs, address } = seen === undefined ? neverSeen : decodeSeen(seen);
    return { ...decoded, mailboxSize: this.#mailboxSize(device), lastSeenMs, lastAddress: address };
  }
}

/** The key range of a fleet's devices after `after`. */
function rangeOf(fleetId: string, after: string): { start: Buffer; end: Buffer } {
  return {
    start: Buffer.from(`${fleetId}${after}\0`, 'latin1'),
    end: Buffer.from(deviceKeyOf(fleetId, afterDevices), 'latin1'),
  };
}
