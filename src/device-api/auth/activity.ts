import { SingleFlight } from '../../core/async.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { copyUuid, formatUuid } from '../../core/uuid.ts';
import type { Activity } from '../../domain/devices/device.ts';
import type { Fetches } from '../../domain/mail/mail.ts';
import type { Shard } from '../../domain/shard.ts';

/** What is noted of one device until the next flush. */
export interface Note {
  /** False once it is being written: the next sight of the device makes another. */
  isOpen: boolean;
  lastSeenMs: number;
  /** Of its first request of these: taken once a note, for to ask for it costs. */
  address: Uint8Array | undefined;
  fetches: Map<string, { mailId: Buffer } & Fetches> | undefined;
}

/** Who a request came from. */
interface Client {
  /** 4 or 16 bytes; undefined of one that has gone. */
  readonly addressBytes: Uint8Array | undefined;
}

/** A device, and where it was last noted, if it was. */
export interface NotedDevice {
  readonly device: DeviceKey;
  note: Note | undefined;
}

/** Devices whose notes wait at once; one more has them written early, or drops the oldest while a write lasts. */
const notesMax = 100_000;
/** Notes in one write, so that no transaction holds up a shard for long. */
const notesPerWrite = 1_000;

/** Last-seen times and fetch counts change on every request, so they wait here and are written together (D13). */
export class ActivityNotes {
  readonly #shards: { of(device: DeviceKey): Shard };
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #notes = new Map<DeviceKey, Note>();
  /** One at a time: a store that stands still must not let one batch after another pile up here. */
  readonly #writing = new SingleFlight(() => this.#flush());

  constructor(shards: { of(device: DeviceKey): Shard }, flushSeconds: number, log: Log) {
    this.#shards = shards;
    this.#log = log;
    this.#timer = setInterval(() => void this.#writing.run(), flushSeconds * 1_000);
  }

  /** `client` is asked for its address only where a note is opened. */
  seen(known: NotedDevice, client?: Client): Note {
    if (known.note?.isOpen) known.note.lastSeenMs = Date.now();
    else known.note = this.#note(known.device, client);
    return known.note;
  }

  /** `id` is the text of `mailId`. */
  fetched(known: NotedDevice, id: string, mailId: Uint8Array): void {
    const note = this.seen(known);
    note.fetches ??= new Map();
    const fetch = note.fetches.get(id);
    if (fetch !== undefined) fetch.count += 1;
    else note.fetches.set(id, { mailId: copyUuid(mailId), count: 1, firstMs: note.lastSeenMs });
  }

  /** What is noted of a mail and not written yet goes along with its settling, which takes it off here. */
  takeFetches({ note }: NotedDevice, mailId: Uint8Array): Fetches | undefined {
    if (!note?.isOpen || note.fetches === undefined) return undefined;
    const id = formatUuid(mailId);
    const fetches = note.fetches.get(id);
    note.fetches.delete(id);
    return fetches && { count: fetches.count, firstMs: fetches.firstMs };
  }

  /** When it was not settled after all. */
  giveBack(known: NotedDevice, mailId: Uint8Array, { count, firstMs }: Fetches): void {
    const note = this.seen(known);
    note.fetches ??= new Map();
    const id = formatUuid(mailId);
    const later = note.fetches.get(id)?.count ?? 0;
    note.fetches.set(id, { mailId: copyUuid(mailId), count: count + later, firstMs });
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing.settled();
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

  /** Has them off before it waits for anything. */
  async #flush(): Promise<void> {
    const notes = this.#notes;
    if (notes.size === 0) return;
    this.#notes = new Map();
    for (const note of notes.values()) note.isOpen = false;
    try {
      await this.#write(notes);
    } catch (error) {
      this.#log.warn({ err: error }, 'some last-seen times were not written');
    }
  }

  #dropOldest(): void {
    const [oldest] = this.#notes;
    if (oldest === undefined) return;
    const [device, note] = oldest;
    note.isOpen = false;
    this.#notes.delete(device);
  }

  async #write(notes: ReadonlyMap<DeviceKey, Note>): Promise<void> {
    const byShard = new Map<Shard, Activity[]>();
    for (const [device, { lastSeenMs, address, fetches }] of notes) {
      const shard = this.#shards.of(device);
      const activity = { device, lastSeenMs, address, fetches: [...(fetches?.values() ?? [])] };
      const waiting = byShard.get(shard);
      if (waiting) waiting.push(activity);
      else byShard.set(shard, [activity]);
    }
    for (const [shard, activity] of byShard) {
      // In key order neighbouring devices share a page, which is then written once.
      activity.sort((a, b) => (a.device < b.device ? -1 : 1));
      for (let start = 0; start < activity.length; start += notesPerWrite) {
        await shard.noteActivity(activity.slice(start, start + notesPerWrite));
      }
    }
  }
}
