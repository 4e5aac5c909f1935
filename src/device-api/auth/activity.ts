import { SingleFlight } from '../../core/async.ts';
import { isUnavailable } from '../../core/errors.ts';
import { addToGroup } from '../../core/groups.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { copyUuid, formatUuid } from '../../core/uuid.ts';
import type { Activity } from '../../domain/devices/device.ts';
import type { DeviceMarks } from '../../domain/devices/device-marks.ts';
import type { Fetches } from '../../domain/mail/mail.ts';
import type { Shard } from '../../domain/shard.ts';

/** Unflushed activity of one device. */
export interface Note {
  /** False once it is being written: the device's next request opens another note. */
  isOpen: boolean;
  lastSeenMs: number;
  /** Client address of the note's first request; read once a note because the lookup is costly. */
  address: Uint8Array | undefined;
  fetches: Map<string, { mailId: Buffer } & Fetches> | undefined;
}

interface Client {
  /** 4 or 16 bytes; undefined once the client has disconnected. */
  readonly addressBytes: Uint8Array | undefined;
}

/** A device and its latest note. */
export interface NotedDevice {
  readonly device: DeviceKey;
  note: Note | undefined;
}

interface ActivityOptions {
  shards: { of(device: DeviceKey): Shard };
  flushSeconds: number;
  /** Devices whose fetches are written at once. */
  watched: DeviceMarks;
  log: Log;
}

/** Maximum unflushed notes. One more triggers an early flush, or drops the oldest while a flush is running. */
const notesMax = 100_000;
/** Notes per write, so that no transaction blocks a shard for long. */
const notesPerWrite = 1_000;

/** Buffers last-seen times and fetch counts, which change on every request, and writes them in batches (D13). */
export class ActivityNotes {
  readonly #shards: { of(device: DeviceKey): Shard };
  readonly #watched: DeviceMarks;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #notes = new Map<DeviceKey, Note>();
  /** One flush at a time, so that batches do not pile up while the store is stalled. */
  readonly #writing = new SingleFlight(() => this.#flush());
  /** Watched devices that have fetched since they were written. */
  #fetching = new Set<DeviceKey>();
  /** Likewise one at a time: what is fetched meanwhile shares the next one. */
  readonly #writingFetches = new SingleFlight(
    () => this.#flushFetches(),
    () => this.#fetching.size > 0,
  );

  constructor({ shards, flushSeconds, watched, log }: ActivityOptions) {
    this.#shards = shards;
    this.#watched = watched;
    this.#log = log;
    this.#timer = setInterval(() => void this.#writing.run(), flushSeconds * 1_000);
  }

  /** Records a request of the device. Reads the client's address only when it opens a note. */
  seen(known: NotedDevice, client?: Client): Note {
    if (known.note?.isOpen) known.note.lastSeenMs = Date.now();
    else known.note = this.#note(known.device, client);
    return known.note;
  }

  /** Counts a fetch of a mail; `id` is the text of `mailId`. */
  fetched(known: NotedDevice, id: string, mailId: Uint8Array): void {
    const note = this.seen(known);
    note.fetches ??= new Map();
    const fetch = note.fetches.get(id);
    if (fetch !== undefined) fetch.count += 1;
    else note.fetches.set(id, { mailId: copyUuid(mailId), count: 1, firstMs: note.lastSeenMs });
    if (!this.#watched.has(known.device)) return;
    this.#fetching.add(known.device);
    void this.#writingFetches.run();
  }

  /** Stores a fetch of each of these mails at once, as far as they are there. @throws ApiError unavailable */
  async storeFetches(known: NotedDevice, mailIds: readonly Uint8Array[]): Promise<void> {
    const { device } = known;
    const { lastSeenMs } = this.seen(known);
    const fetches = mailIds.map((id) => ({ mailId: copyUuid(id), count: 1, firstMs: lastSeenMs }));
    await this.#shards.of(device).devices.noteActivity([{ device, lastSeenMs, address: undefined, fetches }]);
  }

  /** Removes and returns a mail's unflushed fetches, to be written along with its settling. */
  takeFetches({ note }: NotedDevice, mailId: Uint8Array): Fetches | undefined {
    if (!note?.isOpen || note.fetches === undefined) return undefined;
    const id = formatUuid(mailId);
    const fetches = note.fetches.get(id);
    note.fetches.delete(id);
    return fetches && { count: fetches.count, firstMs: fetches.firstMs };
  }

  /** Puts fetches back after a settling that failed. */
  restoreFetches(known: NotedDevice, mailId: Uint8Array, { count, firstMs }: Fetches): void {
    const note = this.seen(known);
    note.fetches ??= new Map();
    const id = formatUuid(mailId);
    const later = note.fetches.get(id)?.count ?? 0;
    note.fetches.set(id, { mailId: copyUuid(mailId), count: count + later, firstMs });
  }

  /** Flushes the remaining notes. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([this.#writing.settled(), this.#writingFetches.settled()]);
    await this.#writing.run();
  }

  #note(device: DeviceKey, client: Client | undefined): Note {
    const nowMs = Date.now();
    let note = this.#notes.get(device);
    if (note === undefined) {
      if (this.#notes.size >= notesMax) void this.#writing.run();
      if (this.#notes.size >= notesMax) this.#dropOldest();
      note = { isOpen: true, lastSeenMs: nowMs, address: client?.addressBytes, fetches: undefined };
      this.#notes.set(device, note);
    }
    note.lastSeenMs = nowMs;
    return note;
  }

  /** Takes the notes off before its first await, so that none is written twice. */
  async #flush(): Promise<void> {
    const notes = this.#notes;
    if (notes.size === 0) return;
    this.#notes = new Map();
    for (const note of notes.values()) note.isOpen = false;
    await this.#write(notes);
  }

  /** Writes the notes of watched devices, whose fetches somebody waits to see. */
  async #flushFetches(): Promise<void> {
    while (this.#fetching.size > 0) {
      const notes = new Map<DeviceKey, Note>();
      for (const device of this.#fetching) {
        const note = this.#notes.get(device);
        if (note === undefined) continue;
        note.isOpen = false;
        this.#notes.delete(device);
        notes.set(device, note);
      }
      this.#fetching = new Set();
      await this.#write(notes);
    }
  }

  #dropOldest(): void {
    const [oldest] = this.#notes;
    if (oldest === undefined) return;
    const [device, note] = oldest;
    note.isOpen = false;
    this.#notes.delete(device);
  }

  /**
   * Writes a batch. What a shard cannot take now is kept for the next flush, so that no fetch is lost for good; of a
   * batch that fails for another reason, a damaged record say, the rest is written without the one at fault.
   */
  async #writeBatch(shard: Shard, batch: readonly Activity[]): Promise<void> {
    try {
      await shard.devices.noteActivity(batch);
    } catch (error) {
      if (isUnavailable(error)) {
        this.#log.warn({ err: error, devices: batch.length }, 'activity flush failed; retrying');
        for (const activity of batch) this.#keep(activity);
      } else if (batch.length > 1) {
        const half = Math.ceil(batch.length / 2);
        await this.#writeBatch(shard, batch.slice(0, half));
        await this.#writeBatch(shard, batch.slice(half));
      } else {
        const [activity] = batch;
        this.#log.warn(
          { err: error, device: activity?.device },
          'activity of a device cannot be stored; dropped',
        );
      }
    }
  }

  /** Adds activity that was not written to the device's next note. */
  #keep({ device, lastSeenMs, address, fetches }: Activity): void {
    let note = this.#notes.get(device);
    if (note === undefined) {
      if (this.#notes.size >= notesMax) this.#dropOldest();
      note = { isOpen: true, lastSeenMs, address, fetches: undefined };
      this.#notes.set(device, note);
    }
    note.address ??= address;
    for (const { mailId, count, firstMs } of fetches) {
      note.fetches ??= new Map();
      const id = formatUuid(mailId);
      const later = note.fetches.get(id)?.count ?? 0;
      note.fetches.set(id, { mailId: copyUuid(mailId), count: count + later, firstMs });
    }
  }

  async #write(notes: ReadonlyMap<DeviceKey, Note>): Promise<void> {
    const byShard = new Map<Shard, Activity[]>();
    for (const [device, { lastSeenMs, address, fetches }] of notes) {
      const shard = this.#shards.of(device);
      const activity = { device, lastSeenMs, address, fetches: [...(fetches?.values() ?? [])] };
      addToGroup(byShard, shard, activity);
    }
    for (const [shard, activity] of byShard) {
      // In key order, neighbouring devices share a page, which is then written once.
      activity.sort((a, b) => (a.device < b.device ? -1 : 1));
      for (let start = 0; start < activity.length; start += notesPerWrite) {
        await this.#writeBatch(shard, activity.slice(start, start + notesPerWrite));
      }
    }
  }
}
