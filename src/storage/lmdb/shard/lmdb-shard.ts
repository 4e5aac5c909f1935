import { queueFull } from '../../../core/errors.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type {
  Activity,
  ChangeOutcome,
  Device,
  DeviceChange,
  DeviceCredentials,
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
import type { Ingest, IngestOutcome, LogPage } from '../../../domain/records/record.ts';
import type { Awaitable, ChangeToken, Page, Shard, StreamSink } from '../../../domain/shard.ts';
import type { Completion } from '../../../domain/write.ts';
import { encodeLogRecord } from '../log/log-record.ts';
import type { ShardReader } from './reader.ts';
import type { Append, Write, WriteAnswer, Writes, WriteType } from './write.ts';

/** Writes to the shard's owner: directly on its own thread, by message from any other. */
export interface ShardWriter {
  /** Takes callbacks, since each request has one promise, made where the request is. */
  write(write: Write, completion: Completion<WriteAnswer>): void;
  subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void>;
  readonly presence: Presence;
}

/** Limits on writes queued for one shard. */
export interface QueueLimits {
  shardQueueMax: number;
  shardQueueBytesMax: number;
}

/** The `Shard` on LMDB, the same on every thread: reads in place, writes through the `ShardWriter`. */
export class LmdbShard implements Shard {
  readonly #reader: ShardReader;
  readonly #owner: ShardWriter;
  /** Writes under way to this shard from all threads; the limit applies to their sum. */
  readonly #depth: Int32Array<SharedArrayBuffer>;
  /** Payload bytes of those writes. */
  readonly #depthBytes: Int32Array<SharedArrayBuffer>;
  readonly #limits: QueueLimits;

  constructor(
    reader: ShardReader,
    owner: ShardWriter,
    depth: Int32Array<SharedArrayBuffer>,
    depthBytes: Int32Array<SharedArrayBuffer>,
    limits: QueueLimits,
  ) {
    this.#reader = reader;
    this.#owner = owner;
    this.#depth = depth;
    this.#depthBytes = depthBytes;
    this.#limits = limits;
  }

  accepts(): boolean {
    const { shardQueueMax, shardQueueBytesMax } = this.#limits;
    return (
      Atomics.load(this.#depth, 0) < shardQueueMax && Atomics.load(this.#depthBytes, 0) < shardQueueBytesMax
    );
  }

  changeToken(device: DeviceKey): ChangeToken {
    return this.#reader.changeToken(device);
  }

  credentials(device: DeviceKey): DeviceCredentials | undefined {
    return this.#reader.credentials(device);
  }

  mailboxSize(device: DeviceKey): number {
    return this.#reader.mailboxSize(device);
  }

  mailboxHead(device: DeviceKey): MailboxHead {
    return this.#reader.mailboxHead(device);
  }

  device(device: DeviceKey): DeviceStatus | undefined {
    return this.#reader.device(device);
  }

  get presence(): Presence {
    return this.#owner.presence;
  }

  findDevices(query: DeviceQuery): Awaitable<FoundDevices> {
    if (query.by === 'connected') return this.#findConnected(query);
    const found = this.#reader.findDevices(query);
    return query.connected === undefined ? found : this.#withPresence(found, query.connected);
  }

  countEntries(by: DeviceIndex, filter: DeviceFilter, max: number): Awaitable<number> {
    if (by === 'connected') return this.presence.connectedCount(filter.fleetId);
    return this.#reader.countEntries(by, filter, max);
  }

  fleetCounts(fleetId: string): FleetCounts {
    return this.#reader.fleetCounts(fleetId);
  }

  countSeen(filter: DeviceFilter, after: string, scanMax: number): SeenCount {
    return this.#reader.countSeen(filter, after, scanMax);
  }

  deviceIds(fleetId: string, after: string, limit: number): string[] {
    return this.#reader.deviceIds(fleetId, after, limit);
  }

  devicesWithTag(fleetId: string, tag: string, after: string, limit: number): string[] {
    return this.#reader.devicesWithTag(fleetId, tag, after, limit);
  }

  mails(device: DeviceKey, after: string, limit: number): Page<Mail> {
    return this.#reader.mails(device, after, limit);
  }

  receipt(device: DeviceKey, mailId: Uint8Array): Receipt | undefined {
    return this.#reader.receipt(device, mailId);
  }

  deadLetters(fleetId: string, filter: DeadLetterFilter, after: string, limit: number): Page<DeadLetter> {
    return this.#reader.deadLetters(fleetId, filter, after, limit);
  }

  deadLetter(device: DeviceKey, mailId: Uint8Array): DeadLetterWithPayload | undefined {
    return this.#reader.deadLetter(device, mailId);
  }

  records(from: number): LogPage {
    return this.#reader.records(from);
  }

  logEnd(): number {
    return this.#reader.logEnd();
  }

  positionAt(timeMs: number): number {
    return this.#reader.positionAt(timeMs);
  }

  timeAt(position: number): number | undefined {
    return this.#reader.timeAt(position);
  }

  reorderedUntil(): number {
    return this.#reader.reorderedUntil();
  }

  ingest(ingest: Ingest): Promise<IngestOutcome> {
    const append: Append = { device: ingest.device, record: encodeLogRecord(ingest) };
    if (ingest.idempotency !== undefined) append.idempotency = ingest.idempotency;
    return this.#write('ingest', append, append.record.length);
  }

  settle(settle: Settle): Promise<SettleOutcome> {
    return this.#write('settle', settle);
  }

  enqueue(enqueue: Enqueue): Promise<EnqueueOutcome> {
    return this.#write('enqueue', enqueue, enqueue.payload.length);
  }

  withdrawMail(device: DeviceKey, mailId: Uint8Array): Promise<Withdrawal> {
    return this.#write('withdrawMail', { device, mailId });
  }

  replayMail(replay: Replay): Promise<ReplayOutcome> {
    return this.#write('replayMail', replay);
  }

  dropDeadLetter(device: DeviceKey, mailId: Uint8Array): Promise<boolean> {
    return this.#write('dropDeadLetter', { device, mailId });
  }

  async pruneDedupeKeys(before: Uint8Array | undefined): Promise<number> {
    // A single step: before the next one, mail with an older dedupe key may have been sent.
    return this.#reader.hasDedupeKeys(before) ? this.#write('pruneDedupeKeys', before) : 0;
  }

  broadcast(broadcast: Broadcast): Promise<BroadcastOutcome> {
    return this.#write('broadcast', broadcast, broadcast.mail.payload.length);
  }

  async pruneBroadcasts(active: readonly BroadcastProgress[]): Promise<number> {
    return this.#reader.hasPrunableBroadcasts(active) ? this.#write('pruneBroadcasts', active) : 0;
  }

  createDevices(devices: readonly Device[]): Promise<DeviceKey | undefined> {
    return this.#write('createDevices', devices);
  }

  changeDevice(device: DeviceKey, change: DeviceChange): Promise<boolean> {
    return this.#write('changeDevice', { device, change });
  }

  changeDevices(devices: readonly DeviceKey[], change: DeviceChange): Promise<ChangeOutcome[]> {
    return this.#write('changeDevices', { devices, change });
  }

  putDevices(puts: readonly DevicePut[]): Promise<PutOutcome[]> {
    return this.#write('putDevices', puts);
  }

  deleteDevice(device: DeviceKey): Promise<boolean> {
    return this.#write('deleteDevice', device);
  }

  noteActivity(activity: readonly Activity[]): Promise<void> {
    return this.#write('noteActivity', activity);
  }

  subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void> {
    return this.#owner.subscribe(device, sink);
  }

  async #findConnected(query: DeviceQuery): Promise<FoundDevices> {
    const { fleetId, after, scanMax } = query;
    const devices = await this.presence.connectedDevices(fleetId, after, scanMax);
    const reached = devices.length === scanMax ? devices.at(-1)?.position : undefined;
    return { items: this.#reader.matching(devices, query), reached };
  }

  async #withPresence({ items, reached }: FoundDevices, connected: boolean): Promise<FoundDevices> {
    if (items.length === 0) return { items, reached };
    const known = await this.presence.areConnected(items.map(({ device }) => device));
    return { items: items.filter((_, index) => known[index] === connected), reached };
  }

  /** Counts the write; the owner uncounts it, a batch at a time, without another promise. */
  #write<T extends WriteType>(type: T, params: Writes[T]['params'], bytes = 0): Promise<Writes[T]['answer']> {
    // A front end has one write of notes under way at a time, and they must not be lost to overload.
    if (type !== 'noteActivity' && !this.accepts()) return Promise.reject(queueFull());
    Atomics.add(this.#depth, 0, 1);
    Atomics.add(this.#depthBytes, 0, bytes);
    return new Promise((resolve, reject) => {
      this.#owner.write({ type, params } as Write, {
        resolve: (answer) => {
          Atomics.sub(this.#depthBytes, 0, bytes);
          (resolve as (answer: WriteAnswer) => void)(answer);
        },
        reject: (error) => {
          Atomics.sub(this.#depthBytes, 0, bytes);
          reject(error);
        },
      });
    });
  }
}
