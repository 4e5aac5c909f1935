import type { DeviceKey } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { Device } from '../../../domain/devices/device.ts';
import type { LogPage } from '../../../domain/records/record.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { LogFollower } from '../../records/log-follower.ts';
import type { ParsedPayloads } from '../declaration/parsed-payloads.ts';
import type { ActionQueue } from './action-queue.ts';

export interface ScannerOptions {
  shards: { of(device: DeviceKey): Shard };
  follower: LogFollower;
  log: Log;
  queues(): Iterable<ActionQueue>;
  /** What the queues have parsed. */
  payloads: ParsedPayloads;
  /** True if the queue may take more records now. */
  mayTake(queue: ActionQueue): boolean;
}

/** Pages that a queue reads of one log per poll. */
const pagesPerPoll = 4;

/** Devices as they are during one poll. */
type Senders = Map<DeviceKey, Device | undefined>;

/** Scans the logs of all shards for all queues, each from its own position, so that none delays another. */
export class LogScanner {
  readonly #options: ScannerOptions;
  /** Queues for which it was reported that a device behind has missed records. */
  readonly #missing = new WeakSet<ActionQueue>();

  constructor(options: ScannerOptions) {
    this.#options = options;
  }

  /** Polls every log once, up to its end as read before. Returns whether any queue has come further. */
  async poll(logEnds: readonly number[]): Promise<boolean> {
    const queues = [...this.#options.queues()];
    const senders: Senders = new Map();
    let hasFound = false;
    for (const queue of queues) queue.makeRoom();
    for (const [shard, end] of logEnds.entries()) {
      // Page by page, as queues that are where others are share the page that was read last.
      for (let pages = 0, isMore = true; isMore && pages < pagesPerPoll; pages += 1) {
        isMore = false;
        for (const queue of queues) {
          if (await this.#readOn(queue, shard, end, senders)) isMore = true;
          if (await this.#readAgain(queue, shard, senders)) isMore = true;
        }
        hasFound ||= isMore;
      }
    }
    this.#options.payloads.clear();
    return hasFound;
  }

  /** Offers the next page to a queue. Returns whether it has taken anything of it. */
  async #readOn(queue: ActionQueue, shard: number, end: number, senders: Senders): Promise<boolean> {
    const from = scannedBy(queue, shard);
    if (from >= end || !this.#options.mayTake(queue) || !queue.wants(shard)) return false;
    const page = await this.#options.follower.page(queue.action.fleetId, shard, from);
    // An empty rest of the log stays empty: no records will come before the end.
    const next = page.next === from ? end : page.next;
    await this.#offer(queue, shard, page, senders, () => queue.offer(shard, { ...page, next }, senders));
    return scannedBy(queue, shard) > from;
  }

  /** Reads a page again for devices that a queue has left behind, from the lowest of their cursors. */
  async #readAgain(queue: ActionQueue, shard: number, senders: Senders): Promise<boolean> {
    const from = this.#options.mayTake(queue) ? queue.wantsAgain(shard) : undefined;
    if (from === undefined) return false;
    const page = await this.#options.follower.page(queue.action.fleetId, shard, from);
    if (page.records[0]?.position !== from && !page.damaged) this.#reportMissing(queue, shard, from);
    // Everything that the others have passed may have been trimmed meanwhile.
    const next = page.next === from ? Number.POSITIVE_INFINITY : page.next;
    await this.#offer(queue, shard, page, senders, () =>
      queue.offerAgain(shard, from, { ...page, next }, senders),
    );
    return true;
  }

  async #offer(
    queue: ActionQueue,
    shard: number,
    page: LogPage,
    senders: Senders,
    offer: () => void,
  ): Promise<void> {
    await this.#addSenders(queue, page, senders);
    try {
      offer();
    } catch (error) {
      const { fleetId, name } = queue.action;
      this.#options.log.error(
        { err: error, fleet: fleetId, action: name, shard },
        'record could not be matched against the filter of an action; skipped',
      );
    }
  }

  /** Adds the devices that the queue asks for. Loaded in parallel, as some engines are a network away. */
  async #addSenders(queue: ActionQueue, { records }: LogPage, senders: Senders): Promise<void> {
    const asked = new Set<DeviceKey>();
    for (const record of records) {
      if (!senders.has(record.device) && queue.asksForDevice(record)) asked.add(record.device);
    }
    await Promise.all(
      [...asked].map(async (device) => {
        senders.set(device, await this.#options.shards.of(device).devices.get(device));
      }),
    );
  }

  /** Logs that retention took records of which some may belong to a device behind: how many is unknown. */
  #reportMissing(queue: ActionQueue, shard: number, from: number): void {
    if (this.#missing.has(queue)) return;
    this.#missing.add(queue);
    const { fleetId, name } = queue.action;
    this.#options.log.warn(
      { fleet: fleetId, action: name, shard, from },
      'records were trimmed from the log before an action had read them again for a device that is behind',
    );
  }
}

function scannedBy({ progress }: ActionQueue, shard: number): number {
  return progress[shard]?.scanned ?? 0;
}
