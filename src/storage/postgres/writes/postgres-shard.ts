import type { DeviceKey } from '../../../core/identity.ts';
import type {
  Activity,
  Authentication,
  ChangeOutcome,
  Device,
  DeviceChange,
  DevicePut,
  DeviceStatus,
  FleetCounts,
  PutOutcome,
} from '../../../domain/devices/device.ts';
import type {
  DeviceFilter,
  DeviceIndex,
  DeviceQuery,
  FoundDevices,
  Presence,
  SeenCount,
} from '../../../domain/devices/device-query.ts';
import type { Broadcast, BroadcastOutcome, BroadcastProgress } from '../../../domain/mail/broadcast.ts';
import type {
  DeadLetter,
  DeadLetterFilter,
  DeadLetterWithPayload,
  Receipt,
} from '../../../domain/mail/ended-mail.ts';
import type {
  Enqueue,
  EnqueueOutcome,
  Mail,
  MailboxHead,
  Replay,
  ReplayOutcome,
  Settle,
  SettleOutcome,
  Withdrawal,
} from '../../../domain/mail/mail.ts';
import {
  type Ingest,
  type IngestOutcome,
  type LogPage,
  logRecordBytes,
} from '../../../domain/records/record.ts';
import type { Page, Shard, StreamSink } from '../../../domain/shard.ts';
import type { Database } from '../connection/database.ts';
import type { DeviceReads } from '../devices/device-reads.ts';
import type { RecordReads } from '../log/record-reads.ts';
import type { MailReads } from '../mail/mail-reads.ts';
import { type DatabaseSizes, databaseSizesOf, logBytesOf } from '../schema/sizes.ts';
import type { Streams } from '../streams/streams.ts';
import type { Sweeper } from './sweeper.ts';
import type { Writer } from './writer.ts';

/** Parts of a shard, as `open-shard.ts` opens them. */
interface ShardParts {
  database: Database;
  writer: Writer;
  devices: DeviceReads;
  mail: MailReads;
  records: RecordReads;
  streams: Streams;
  sweeper: Sweeper;
  presence: Presence;
}

/** A `Shard` on a PostgreSQL database, the same for each thread of each node: nobody owns it. */
export class PostgresShard implements Shard {
  readonly presence: Presence;
  readonly #database: Database;
  readonly #writer: Writer;
  readonly #devices: DeviceReads;
  readonly #mail: MailReads;
  readonly #records: RecordReads;
  readonly #streams: Streams;
  readonly #sweeper: Sweeper;

  constructor({ database, writer, devices, mail, records, streams, sweeper, presence }: ShardParts) {
    this.#database = database;
    this.#writer = writer;
    this.#devices = devices;
    this.#mail = mail;
    this.#records = records;
    this.#streams = streams;
    this.#sweeper = sweeper;
    this.presence = presence;
  }

  /** Refuses further writes; settles when the queued ones are durable or refused. */
  async close(): Promise<void> {
    await this.#sweeper.close();
    await this.#writer.close();
    await this.#streams.close();
    await this.#database.close();
  }

  /** Sizes of the database. @throws ApiError unavailable */
  sizes(): Promise<DatabaseSizes> {
    return databaseSizesOf(this.#database);
  }

  /** Record bytes of limited fleets. @throws ApiError unavailable */
  logBytes(): Promise<Map<string, number>> {
    return logBytesOf(this.#database);
  }

  accepts(): boolean {
    return this.#writer.accepts();
  }

  /** Nothing is cached: every read asks the database. */
  changeToken(): undefined {}

  credentials(device: DeviceKey): Promise<Authentication | undefined> {
    return this.#devices.credentials(device);
  }

  mailboxSize(device: DeviceKey): Promise<number> {
    return this.#devices.mailboxSize(device);
  }

  mailboxHead(device: DeviceKey): Promise<MailboxHead> {
    return this.#mail.mailboxHead(device);
  }

  device(device: DeviceKey): Promise<DeviceStatus | undefined> {
    return this.#devices.device(device);
  }

  async findDevices(query: DeviceQuery): Promise<FoundDevices> {
    if (query.by === 'connected') return this.#findConnected(query);
    const { items, reached } = await this.#devices.findDevices(query);
    if (query.connected === undefined || items.length === 0) return { items, reached };
    const known = await this.presence.areConnected(items.map(({ device }) => device));
    return { items: items.filter((_, index) => known[index] === query.connected), reached };
  }

  async countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): Promise<number> {
    if (by !== 'connected') return this.#devices.countEntries(by, filter, max);
    return Math.min(max, await this.presence.connectedCount(filter.fleetId));
  }

  fleetCounts(fleetId: string): Promise<FleetCounts> {
    return this.#devices.fleetCounts(fleetId);
  }

  countSeen(filter: DeviceFilter, after: string, scanMax: number): Promise<SeenCount> {
    return this.#devices.countSeen(filter, after, scanMax);
  }

  deviceIds(fleetId: string, after: string, limit: number): Promise<string[]> {
    return this.#devices.deviceIds(fleetId, after, limit);
  }

  devicesWithTag(fleetId: string, tag: string, after: string, limit: number): Promise<string[]> {
    return this.#devices.devicesWithTag(fleetId, tag, after, limit);
  }

  mails(device: DeviceKey, after: string, limit: number): Promise<Page<Mail>> {
    return this.#mail.mails(device, after, limit);
  }

  receipt(device: DeviceKey, mailId: Uint8Array): Promise<Receipt | undefined> {
    return this.#mail.receipt(device, mailId);
  }

  deadLetters(
    fleetId: string,
    filter: DeadLetterFilter,
    after: string,
    limit: number,
  ): Promise<Page<DeadLetter>> {
    return this.#mail.deadLetters(fleetId, filter, after, limit);
  }

  deadLetter(device: DeviceKey, mailId: Uint8Array): Promise<DeadLetterWithPayload | undefined> {
    return this.#mail.deadLetter(device, mailId);
  }

  records(from: number): Promise<LogPage> {
    return this.#records.records(from);
  }

  logEnd(): Promise<number> {
    return this.#records.logEnd();
  }

  positionAt(timeMs: number): Promise<number> {
    return this.#records.positionAt(timeMs);
  }

  timeAt(position: number): Promise<number | undefined> {
    return this.#records.timeAt(position);
  }

  reorderedUntil(): Promise<number> {
    return this.#records.reorderedUntil();
  }

  ingest(ingest: Ingest): Promise<IngestOutcome> {
    // The caller may reuse the payload when this call returns.
    const copy = { ...ingest, payload: Buffer.from(ingest.payload) };
    return this.#writer.write('ingest', copy, logRecordBytes(ingest));
  }

  settle(settle: Settle): Promise<SettleOutcome> {
    return this.#writer.write('settle', settle);
  }

  enqueue(enqueue: Enqueue): Promise<EnqueueOutcome> {
    return this.#writer.write('enqueue', enqueue, enqueue.payload.length);
  }

  withdrawMail(device: DeviceKey, mailId: Uint8Array): Promise<Withdrawal> {
    return this.#writer.write('withdrawMail', { device, mailId });
  }

  replayMail(replay: Replay): Promise<ReplayOutcome> {
    return this.#writer.write('replayMail', replay);
  }

  dropDeadLetter(device: DeviceKey, mailId: Uint8Array): Promise<boolean> {
    return this.#writer.write('dropDeadLetter', { device, mailId });
  }

  pruneDedupeKeys(before: Uint8Array | undefined): Promise<number> {
    return this.#writer.write('pruneDedupeKeys', before);
  }

  broadcast(broadcast: Broadcast): Promise<BroadcastOutcome> {
    return this.#writer.write('broadcast', broadcast, broadcast.mail.payload.length);
  }

  pruneBroadcasts(active: readonly BroadcastProgress[]): Promise<number> {
    return this.#writer.write('pruneBroadcasts', active);
  }

  createDevices(devices: readonly Device[]): Promise<DeviceKey | undefined> {
    return this.#writer.write('createDevices', devices);
  }

  changeDevice(device: DeviceKey, change: DeviceChange): Promise<boolean> {
    return this.#writer.write('changeDevice', { device, change });
  }

  changeDevices(devices: readonly DeviceKey[], change: DeviceChange): Promise<ChangeOutcome[]> {
    return this.#writer.write('changeDevices', { devices, change });
  }

  putDevices(puts: readonly DevicePut[]): Promise<PutOutcome[]> {
    return this.#writer.write('putDevices', puts);
  }

  deleteDevice(device: DeviceKey): Promise<boolean> {
    return this.#writer.write('deleteDevice', device);
  }

  noteActivity(activity: readonly Activity[]): Promise<void> {
    return this.#writer.write('noteActivity', activity);
  }

  subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void> {
    return this.#streams.subscribe(device, sink);
  }

  async #findConnected(query: DeviceQuery): Promise<FoundDevices> {
    const { fleetId, after, scanMax } = query;
    const devices = await this.presence.connectedDevices(fleetId, after, scanMax);
    const reached = devices.length === scanMax ? devices.at(-1)?.position : undefined;
    return { items: await this.#devices.matching(devices, query), reached };
  }
}
