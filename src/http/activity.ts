import type { DeviceKey } from '../core/identity.ts';
import type { Log } from '../core/log.ts';
import type { Activity, Shard } from '../shard/shard.ts';

/** What is noted of one device until the next flush. */
export interface Note {
  /** False once it is being written: the next sight of the device makes another. */
  isOpen: boolean;
  lastSeenMs: number;
  fetches: Map<string, { mailId: Buffer; count: number; firstMs: number }> | undefined;
}

/** Devices whose notes wait at once; one more has them written early. */
const notesMax = 100_000;
/** Notes in one write, so that no transaction holds up a shard for long. */
const notesPerWrite = 1_000;

/** Last-seen times and fetch counts change on every request, so they wait here and are written together (D13). */
export class ActivityNotes {
  readonly #shards: { of(device: DeviceKey): Shard };
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #notes = new Map<DeviceKey, Note>();
  #writing: Promise<void> = Promise.resolve();

  constructor(shards: { of(device: DeviceKey): Shard }, flushSeconds: number, log: Log) {
    this.#shards = shards;
    this.#log = log;
    this.#timer = setInterval(() => this.#flush(), flushSeconds * 1_000);
  }

  seen(known: { device: DeviceKey; note: Note | undefined }): void {
    if (known.note?.isOpen) known.note.lastSeenMs = Date.now();
    else known.note = this.#note(known.device);
  }

  fetched(device: DeviceKey, mailId: Buffer): void {
    const note = this.#note(device);
    note.fetches ??= new Map();
    const id = mailId.toString('hex');
    const fetch = note.fetches.get(id);
    if (fetch === undefined) note.fetches.set(id, { mailId, count: 1, firstMs: note.lastSeenMs });
    else fetch.count += 1;
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#flush();
    await this.#writing;
  }

  #note(device: DeviceKey): Note {
    const nowMs = Date.now();
    let note = this.#notes.get(device);
    if (note === undefined) {
      if (this.#notes.size >= notesMax) this.#flush();
      note = { isOpen: true, lastSeenMs: nowMs, fetches: undefined };
      this.#notes.set(device, note);
    }
    note.lastSeenMs = nowMs;
    return note;
  }

  #flush(): void {
    const notes = this.#notes;
    if (notes.size === 0) return;
    this.#notes = new Map();
    for (const note of notes.values()) note.isOpen = false;
    this.#writing = this.#writing
      .then(() => this.#write(notes))
      .catch((error: unknown) => this.#log.warn({ err: error }, 'some last-seen times were not written'));
  }

  async #write(notes: ReadonlyMap<DeviceKey, Note>): Promise<void> {
    const byShard = new Map<Shard, Activity[]>();
    for (const [device, { lastSeenMs, fetches }] of notes) {
      const shard = this.#shards.of(device);
      const activity = { device, lastSeenMs, fetches: [...(fetches?.values() ?? [])] };
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
