import { randomBytes } from 'node:crypto';
import { SingleFlight } from '../../../core/async.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { formatUuid } from '../../../core/uuid.ts';
import { connectedPosition } from '../../../domain/connected-devices.ts';
import type { Announcement } from '../../../domain/mail/mail.ts';
import type { ShardStreams, StreamSink } from '../../../domain/shard-streams.ts';
import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';
import type { Listener } from '../connection/listener.ts';
import { Membership } from './membership.ts';
import { StreamPresence } from './presence.ts';
import { channelOf, type MailboxEvent, notifications, readNotifications } from './stream-notifications.ts';
import { findNewMail, LeftStreams, type NewMail, StreamEnds } from './stream-upkeep.ts';

/** Poll interval for ends whose notification was lost: D21 allows a second. */
const endsMilliseconds = 700;
const devicesAtOnce = 1_000;

const addStream = `INSERT INTO stream (device, stream_id, node, position, waits) VALUES ($1, $2, $3, $4, $5) RETURNING ${clockMs} AS opened_at_ms`;
/** Keeps the newest streams, or the newest waiting request: ids begin with the time. */
const displace = `
  WITH displaced AS (
    DELETE FROM stream WHERE device = $1 AND waits = $3 AND stream_id NOT IN
      (SELECT stream_id FROM stream WHERE device = $1 AND waits = $3 ORDER BY stream_id DESC LIMIT $2)
    RETURNING node, stream_id)
  SELECT pg_notify('fleetpost_' || node, string_agg('${notifications.displaced}' || encode(stream_id, 'hex'), ' '))
  FROM displaced GROUP BY node`;
const tailOf = 'SELECT tail FROM mailbox WHERE device = $1';
const restore = `
  INSERT INTO stream (device, stream_id, node, position, waits) SELECT k.device, k.stream_id, $4, k.position, k.waits
  FROM unnest($1::text[], $2::bytea[], $3::text[], $5::boolean[]) AS k (device, stream_id, position, waits)
  ON CONFLICT DO NOTHING`;

interface OpenStream {
  streamId: Buffer;
  sink: StreamSink;
  /** Time of the database clock. */
  openedAtMs: number;
}

interface DeviceStreams {
  streams: OpenStream[];
  /** First sequence not announced here. */
  tail: number;
}

export interface StreamsOptions {
  database: Database;
  perDeviceMax: number;
  /** Poll interval for the mailboxes of all streams: the maximum delay when a notification is lost. */
  checkMilliseconds: number;
  log: Log;
}

/**
 * Event streams of one thread of one node. A writer notifies the nodes that hold streams of a device, with its commit;
 * a node polls when it has missed something, and regularly in any case. So a duplicate notification announces nothing
 * twice, and a lost one is made up for.
 */
export class PostgresStreams implements ShardStreams {
  readonly presence: StreamPresence;
  readonly #options: StreamsOptions;
  readonly #devices = new Map<DeviceKey, DeviceStreams>();
  readonly #displaceable = new Map<string, DeviceKey>();
  /** Streams being opened, in the database but not held yet, and whether they were displaced meanwhile. */
  readonly #opening = new Map<string, boolean>();
  readonly #listener: Listener;
  readonly #timers: NodeJS.Timeout[];
  readonly #ends: StreamEnds;
  #pending = new Set<DeviceKey>();
  readonly #polling = new SingleFlight(
    () =>
      this.#announce().catch((error: unknown) =>
        this.#options.log.error({ err: error }, 'announcing mail failed'),
      ),
    () => this.#pending.size > 0,
  );
  readonly #left: LeftStreams;
  readonly #membership: Membership;

  constructor(options: StreamsOptions) {
    this.#options = options;
    const { database, checkMilliseconds, log } = options;
    this.presence = new StreamPresence(database);
    this.#ends = new StreamEnds(database);
    this.#left = new LeftStreams(database);
    this.#membership = new Membership(database, log, () => this.#restore());
    this.#listener = database.listen({
      channel: channelOf(this.node),
      onPayload: (payload) => this.#onPayload(payload),
      onListening: () => this.#pollAll(),
    });
    this.#timers = [
      setInterval(() => void this.#pollEnds(), endsMilliseconds),
      setInterval(() => {
        this.#pollAll();
        this.#left.remove();
      }, checkMilliseconds),
    ];
  }

  /** Identifies this thread among all of all nodes. */
  get node(): string {
    return this.#membership.node;
  }

  /** @throws ApiError unavailable */
  async subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void> {
    await Promise.all([this.#membership.entered, this.#listener.tried]);
    const streamId = streamIdOf(Date.now());
    const id = streamId.toString('hex');
    this.#opening.set(id, false);
    try {
      return await this.#open(device, sink, streamId);
    } catch (error) {
      this.#remove(device, streamId);
      // The outcome of the insert is unknown: a device whose stream stays in the database counts as connected.
      this.#left.add(device, streamId);
      throw error;
    } finally {
      const isDisplaced = this.#opening.get(id);
      this.#opening.delete(id);
      if (isDisplaced) this.#displace(id);
    }
  }

  async #open(device: DeviceKey, sink: StreamSink, streamId: Buffer): Promise<() => void> {
    const { database, perDeviceMax } = this.#options;
    // From here on, writers notify this node; what was there before, the stream finds itself.
    const [added] = await database.query<{ opened_at_ms: number }>(addStream, [
      device,
      streamId,
      this.node,
      connectedPosition(device),
      sink.waits === true,
    ]);
    const [row] = await database.query<{ tail: number }>(tailOf, [device]);
    const entry = this.#devices.get(device) ?? { streams: [], tail: row?.tail ?? 1 };
    this.#devices.set(device, entry);
    entry.streams.push({ streamId, sink, openedAtMs: added?.opened_at_ms ?? 0 });
    this.#displaceable.set(streamId.toString('hex'), device);
    await database.query(displace, [device, sink.waits ? 1 : perDeviceMax, sink.waits === true]);
    return () => this.#leave(device, streamId);
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#listener.close();
    await this.#polling.settled();
    await this.#left.settled();
    await this.#membership.leave();
  }

  #leave(device: DeviceKey, streamId: Buffer): void {
    if (!this.#remove(device, streamId)) return;
    this.#left.add(device, streamId);
  }

  /** Returns false for a stream no longer held. */
  #remove(device: DeviceKey, streamId: Buffer): boolean {
    const entry = this.#devices.get(device);
    const index = entry?.streams.findIndex((one) => one.streamId.equals(streamId)) ?? -1;
    if (entry === undefined || index < 0) return false;
    entry.streams.splice(index, 1);
    this.#displaceable.delete(streamId.toString('hex'));
    if (entry.streams.length === 0) this.#devices.delete(device);
    return true;
  }

  #onPayload(payload: string): void {
    for (const notification of readNotifications(payload)) {
      if (notification.what === notifications.mail) this.#onMail(notification.event);
      else if (notification.what === notifications.displaced) this.#displace(notification.streamId);
      else this.#end(notification.device, notification.what);
    }
  }

  /** Announces the next mail at once; polls if a notification was lost. */
  #onMail({ device, sequence, announcement }: MailboxEvent): void {
    const entry = this.#devices.get(device);
    if (entry === undefined || sequence < entry.tail) return;
    if (sequence > entry.tail) {
      this.#poll(device);
      return;
    }
    entry.tail += 1;
    if (announcement !== undefined) announceTo(entry, announcement);
  }

  #displace(id: string): void {
    const device = this.#displaceable.get(id);
    if (this.#opening.has(id)) this.#opening.set(id, true);
    if (device === undefined) return;
    const found = this.#devices.get(device)?.streams.find(({ streamId }) => streamId.toString('hex') === id);
    if (found === undefined) return;
    this.#remove(device, found.streamId);
    found.sink.end();
  }

  /** Ends or rechecks the streams opened before `atMs`. */
  #end(device: DeviceKey, what: string, atMs = Number.POSITIVE_INFINITY): void {
    const entry = this.#devices.get(device);
    if (entry === undefined) return;
    for (const { streamId, sink, openedAtMs } of [...entry.streams]) {
      if (openedAtMs > atMs) continue;
      if (what === notifications.recheck) sink.recheck();
      else {
        this.#leave(device, streamId);
        sink.end();
      }
    }
  }

  #poll(device: DeviceKey): void {
    if (!this.#devices.has(device)) return;
    this.#pending.add(device);
    void this.#polling.run();
  }

  #pollAll(): void {
    for (const device of this.#devices.keys()) this.#poll(device);
  }

  /** Announces new mail of pending devices: one statement at a time, for all that become pending meanwhile. */
  async #announce(): Promise<void> {
    while (this.#pending.size > 0) {
      const devices = [...this.#pending].slice(0, devicesAtOnce);
      for (const device of devices) this.#pending.delete(device);
      const tails = devices.map((device) => this.#devices.get(device)?.tail ?? Number.MAX_SAFE_INTEGER);
      let rows: NewMail[];
      try {
        rows = await findNewMail(this.#options.database, devices, tails);
      } catch {
        // Logged by the database. The next poll of all retries; at once would be in vain.
        return;
      }
      for (const device of new Set(rows.map((row) => row.device))) {
        this.#catchUp(
          device,
          rows.filter((row) => row.device === device),
        );
      }
    }
  }

  /** Announces missed mail. The size is the current one: the one at that time was not stored. */
  #catchUp(device: DeviceKey, rows: readonly NewMail[]): void {
    const entry = this.#devices.get(device);
    if (entry === undefined) return;
    const from = entry.tail;
    for (const { tail, size, sequence, mail_id: mailId, name } of rows) {
      entry.tail = Math.max(entry.tail, tail);
      if (sequence === null || mailId === null || name === null || sequence < from) continue;
      announceTo(entry, { mailId: formatUuid(mailId), name, mailboxSize: size });
    }
  }

  async #pollEnds(): Promise<void> {
    if (this.#devices.size === 0) return;
    let ends: Awaited<ReturnType<StreamEnds['poll']>>;
    try {
      ends = await this.#ends.poll();
    } catch {
      // Logged by the database. The next poll is due in less than a second.
      return;
    }
    for (const { device, what, at_ms: atMs } of ends) {
      try {
        this.#end(device, what, atMs);
      } catch (error) {
        this.#options.log.error({ err: error }, 'ending a stream failed');
      }
    }
  }

  /** Inserts all streams again, after this node was taken for dead. */
  async #restore(): Promise<void> {
    const all = [...this.#devices].flatMap(([device, { streams }]) =>
      streams.map(({ streamId, sink }) => ({ device, streamId, waits: sink.waits === true })),
    );
    for (let start = 0; start < all.length; start += devicesAtOnce) {
      const part = all.slice(start, start + devicesAtOnce);
      const ids = part.map(({ streamId }) => streamId);
      const positions = part.map(({ device }) => connectedPosition(device));
      await this.#options.database.query(restore, [
        part.map(({ device }) => device),
        ids,
        positions,
        this.node,
        part.map(({ waits }) => waits),
      ]);
    }
    this.#pollAll();
  }
}

/** Goes through a copy: a stream that is cut as it is told leaves at once, and its neighbour must not be passed over. */
function announceTo({ streams }: DeviceStreams, announcement: Announcement): void {
  for (const { sink } of [...streams]) sink.announce(announcement);
}

/** A unique id that sorts by time. */
function streamIdOf(timeMs: number): Buffer {
  const id = randomBytes(16);
  id.writeUIntBE(timeMs, 0, 6);
  return id;
}
