import { randomBytes } from 'node:crypto';
import { SingleFlight } from '../../../core/async.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { formatUuid } from '../../../core/uuid.ts';
import { connectedPosition } from '../../../domain/connected-devices.ts';
import type { StreamSink } from '../../../domain/shard.ts';
import type { Database } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';
import type { Listener } from '../connection/listener.ts';
import { findNewMail, LeftStreams, Membership, type NewMail, StreamEnds } from './membership.ts';
import { channelOf, type MailboxEvent, notifications, readNotifications } from './stream-notifications.ts';

/** Of ends that no notification told: D21 has a second. */
const endsMilliseconds = 700;
const devicesAtOnce = 1_000;

const addStream = `INSERT INTO stream (device, stream_id, node, position) VALUES ($1, $2, $3, $4) RETURNING ${clockMs} AS opened_at_ms`;
/** The newest stay: ids begin with the time. */
const displace = `
  WITH gone AS (
    DELETE FROM stream WHERE device = $1 AND stream_id NOT IN
      (SELECT stream_id FROM stream WHERE device = $1 ORDER BY stream_id DESC LIMIT $2)
    RETURNING node, stream_id)
  SELECT pg_notify('fleetpost_' || node, string_agg('${notifications.displaced}' || encode(stream_id, 'hex'), ' '))
  FROM gone GROUP BY node`;
const tailOf = 'SELECT tail FROM mailbox WHERE device = $1';
const restore = `
  INSERT INTO stream (device, stream_id, node, position) SELECT k.device, k.stream_id, $4, k.position
  FROM unnest($1::text[], $2::bytea[], $3::text[]) AS k (device, stream_id, position) ON CONFLICT DO NOTHING`;

interface Held {
  streamId: Buffer;
  sink: StreamSink;
  /** By the clock of the database. */
  openedAtMs: number;
}

interface HeldDevice {
  streams: Held[];
  /** The first sequence that was not announced here. */
  tail: number;
}

export interface StreamsOptions {
  database: Database;
  perDeviceMax: number;
  /** Between two looks at the mailboxes of all streams: what a notification that is lost can cost. */
  checkMilliseconds: number;
  log: Log;
}

/**
 * The event streams that one thread of one node holds. Who changes a device tells the nodes that hold its streams, with
 * the commit; a node then looks itself for what is new, and does so in any case from time to time. So a notification
 * that comes twice announces nothing twice, and one that is lost is made up for.
 */
export class Streams {
  readonly #options: StreamsOptions;
  readonly #devices = new Map<DeviceKey, HeldDevice>();
  readonly #displaceable = new Map<string, DeviceKey>();
  /** Streams that are written down and not held yet, and whether they were displaced meanwhile. */
  readonly #opening = new Map<string, boolean>();
  readonly #listener: Listener;
  readonly #timers: NodeJS.Timeout[];
  readonly #ends: StreamEnds;
  #asked = new Set<DeviceKey>();
  readonly #looking = new SingleFlight(() =>
    this.#announce().catch((error: unknown) =>
      this.#options.log.error({ err: error }, 'announcing mail failed'),
    ),
  );
  readonly #left: LeftStreams;
  readonly #membership: Membership;

  constructor(options: StreamsOptions) {
    this.#options = options;
    const { database, checkMilliseconds, log } = options;
    this.#ends = new StreamEnds(database);
    this.#left = new LeftStreams(database);
    this.#membership = new Membership(database, log, () => this.#tellAgain());
    this.#listener = database.listen({
      channel: channelOf(this.node),
      onPayload: (payload) => this.#hear(payload),
      onListening: () => this.#lookAtAll(),
    });
    this.#timers = [
      setInterval(() => void this.#lookForEnds(), endsMilliseconds),
      setInterval(() => {
        this.#lookAtAll();
        this.#left.remove();
      }, checkMilliseconds),
    ];
  }

  /** This thread among all of all nodes. */
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
      this.#forget(device, streamId);
      // Nobody knows whether it was written down: a device whose stream stays there counts as connected.
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
    // From here on others tell: what was there before is the stream's own to find.
    const [added] = await database.query<{ opened_at_ms: number }>(addStream, [
      device,
      streamId,
      this.node,
      connectedPosition(device),
    ]);
    const [row] = await database.query<{ tail: number }>(tailOf, [device]);
    const held = this.#devices.get(device) ?? { streams: [], tail: row?.tail ?? 1 };
    this.#devices.set(device, held);
    held.streams.push({ streamId, sink, openedAtMs: added?.opened_at_ms ?? 0 });
    this.#displaceable.set(streamId.toString('hex'), device);
    await database.query(displace, [device, perDeviceMax]);
    return () => this.#leave(device, streamId);
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#listener.close();
    await this.#looking.settled();
    await this.#left.settled();
    await this.#membership.leave();
  }

  #leave(device: DeviceKey, streamId: Buffer): void {
    if (!this.#forget(device, streamId)) return;
    this.#left.add(device, streamId);
  }

  /** False for one that is not held any more. */
  #forget(device: DeviceKey, streamId: Buffer): boolean {
    const held = this.#devices.get(device);
    const index = held?.streams.findIndex((one) => one.streamId.equals(streamId)) ?? -1;
    if (held === undefined || index < 0) return false;
    held.streams.splice(index, 1);
    this.#displaceable.delete(streamId.toString('hex'));
    if (held.streams.length === 0) this.#devices.delete(device);
    return true;
  }

  #hear(payload: string): void {
    for (const told of readNotifications(payload)) {
      if (told.what === notifications.mail) this.#hearOfMail(told.given);
      else if (told.what === notifications.displaced) this.#displace(told.streamId);
      else this.#end(told.device, told.what);
    }
  }

  /** What comes in its turn is announced at once; where a notification was lost, there is a look. */
  #hearOfMail({ device, sequence, announcement }: MailboxEvent): void {
    const held = this.#devices.get(device);
    if (held === undefined || sequence < held.tail) return;
    if (sequence > held.tail) {
      this.#look(device);
      return;
    }
    held.tail += 1;
    if (announcement === undefined) return;
    for (const { sink } of held.streams) sink.announce(announcement);
  }

  #displace(id: string): void {
    const device = this.#displaceable.get(id);
    if (this.#opening.has(id)) this.#opening.set(id, true);
    if (device === undefined) return;
    const found = this.#devices.get(device)?.streams.find(({ streamId }) => streamId.toString('hex') === id);
    if (found === undefined) return;
    this.#forget(device, found.streamId);
    found.sink.end();
  }

  /** Of streams that were open at that time. */
  #end(device: DeviceKey, what: string, atMs = Number.POSITIVE_INFINITY): void {
    const held = this.#devices.get(device);
    if (held === undefined) return;
    for (const { streamId, sink, openedAtMs } of [...held.streams]) {
      if (openedAtMs > atMs) continue;
      if (what === notifications.recheck) sink.recheck();
      else {
        this.#leave(device, streamId);
        sink.end();
      }
    }
  }

  #look(device: DeviceKey): void {
    if (!this.#devices.has(device)) return;
    this.#asked.add(device);
    void this.#looking.run();
  }

  #lookAtAll(): void {
    for (const device of this.#devices.keys()) this.#look(device);
  }

  /** What has come for those that were asked for: one statement at a time, for all that ask meanwhile. */
  async #announce(): Promise<void> {
    while (this.#asked.size > 0) {
      const devices = [...this.#asked].slice(0, devicesAtOnce);
      for (const device of devices) this.#asked.delete(device);
      const tails = devices.map((device) => this.#devices.get(device)?.tail ?? Number.MAX_SAFE_INTEGER);
      let rows: NewMail[];
      try {
        rows = await findNewMail(this.#options.database, devices, tails);
      } catch {
        // The database has logged it. Asked again by the next look at all of them; at once would be in vain.
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

  /** What was not heard of meanwhile. The size is that of now: what it was then, nobody has kept. */
  #catchUp(device: DeviceKey, rows: readonly NewMail[]): void {
    const held = this.#devices.get(device);
    if (held === undefined) return;
    const from = held.tail;
    for (const { tail, size, sequence, mail_id: mailId, name } of rows) {
      held.tail = Math.max(held.tail, tail);
      if (sequence === null || mailId === null || name === null || sequence < from) continue;
      const announcement = { mailId: formatUuid(mailId), name, mailboxSize: size };
      for (const { sink } of held.streams) sink.announce(announcement);
    }
  }

  async #lookForEnds(): Promise<void> {
    if (this.#devices.size === 0) return;
    let ends: Awaited<ReturnType<StreamEnds['look']>>;
    try {
      ends = await this.#ends.look();
    } catch {
      // The database has logged it. The next look is due in less than a second.
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

  /** Where this node was taken for dead, and its streams with it. */
  async #tellAgain(): Promise<void> {
    const all = [...this.#devices].flatMap(([device, { streams }]) =>
      streams.map(({ streamId }) => ({ device, streamId })),
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
      ]);
    }
    this.#lookAtAll();
  }
}

/** Sorts by time, and is nobody else's. */
function streamIdOf(timeMs: number): Buffer {
  const id = randomBytes(16);
  id.writeUIntBE(timeMs, 0, 6);
  return id;
}
