import { yieldToEventLoop } from '../../../core/async.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import type { Device } from '../../../domain/devices/device.ts';
import type { LogPage } from '../../../domain/records/record.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { ActionQueue } from './action-queue.ts';

export interface ScannerOptions {
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  log: Log;
  queues(): Iterable<ActionQueue>;
  /** Whether more records may be taken now. */
  mayTake(): boolean;
}

/** Pages read from one position per poll. */
const pagesPerPoll = 4;
/** Longest stretch of a poll before it yields to the event loop. */
const pollMsMax = 10;

/** Scans the logs of all shards for all queues, each from its own position. */
export class LogScanner {
  readonly #options: ScannerOptions;
  /** By queue, the shards in which it has missed records: reported once, until it has caught up there. */
  readonly #missed = new WeakMap<ActionQueue, Set<number>>();

  constructor(options: ScannerOptions) {
    this.#options = options;
  }

  /** Polls every log once. Returns whether there was anything. */
  async poll(): Promise<boolean> {
    let hasFound = false;
    for (const { intake } of this.#options.queues()) intake.makeRoom();
    let sinceMs = performance.now();
    for (const readNext of this.#readers()) {
      for (let pages = 0; pages < pagesPerPoll; pages += 1) {
        if (!(await readNext())) break;
        hasFound = true;
        if (performance.now() - sinceMs < pollMsMax) continue;
        await yieldToEventLoop();
        sinceMs = performance.now();
      }
    }
    return hasFound;
  }

  /** Yields functions that read one page per call, in sequence, and return whether there was one. */
  *#readers(): Generator<() => Promise<boolean>> {
    for (const [shard] of this.#options.shards.all.entries()) {
      for (const position of this.#positions(shard)) {
        let from: number | undefined = position;
        yield async () => {
          from = from === undefined ? undefined : await this.#readPage(shard, from);
          return from !== undefined;
        };
      }
      for (const queue of this.#options.queues()) yield () => this.#readAgain(shard, queue);
    }
  }

  /**
   * Positions to read in the log of that shard: that of each queue, so that one far behind does not delay others.
   * Queues that have caught up share one.
   */
  #positions(index: number): ReadonlySet<number> {
    const positions = new Set<number>();
    for (const queue of this.#options.queues()) {
      if (queue.intake.wants(index)) positions.add(queue.intake.progress[index]?.scanned ?? 0);
    }
    return positions;
  }

  /** Returns where to continue; undefined at the end of the log, or where no queue wants it. */
  async #readPage(index: number, from: number): Promise<number | undefined> {
    const { shards, queues, mayTake } = this.#options;
    if (!mayTake()) return undefined;
    const wanting = [...queues()].filter(
      ({ intake }) => intake.wants(index) && intake.progress[index]?.scanned === from,
    );
    if (wanting.length === 0) return undefined;
    const page = await shards.all[index]?.records(from);
    if (page === undefined) return undefined;
    if (page.next === from) {
      for (const queue of wanting) {
        queue.intake.passGap(index, from);
        this.#missed.get(queue)?.delete(index);
      }
      return undefined;
    }
    await this.#offer(index, from, page, wanting, ({ intake }, devices) =>
      intake.offer(index, page, devices),
    );
    return page.next;
  }

  /**
   * Reads a page again for devices that a queue has left behind, from the lowest of their cursors. Returns whether
   * there was one.
   */
  async #readAgain(index: number, queue: ActionQueue): Promise<boolean> {
    const { shards, mayTake } = this.#options;
    const from = mayTake() ? queue.intake.wantsAgain(index) : undefined;
    const page = from === undefined ? undefined : await shards.all[index]?.records(from);
    if (from === undefined || page === undefined) return false;
    // Everything that the others have passed may have been trimmed meanwhile.
    const found = page.next === from ? { ...page, next: Number.POSITIVE_INFINITY } : page;
    await this.#offer(index, from, page, [queue], ({ intake }, devices) =>
      intake.offerAgain(index, from, found, devices),
    );
    return true;
  }

  async #offer(
    index: number,
    from: number,
    page: LogPage,
    queues: readonly ActionQueue[],
    offer: (queue: ActionQueue, devices: ReadonlyMap<DeviceKey, Device>) => void,
  ): Promise<void> {
    const { log } = this.#options;
    if (page.damaged) {
      log.error({ shard: index, position: from }, 'actions: damaged log batch skipped');
    }
    if (!page.damaged && page.next - from > page.records.length) {
      for (const queue of queues) this.#reportMissed(queue, index, from);
    }
    const devices = await this.#devicesOf(page, queues);
    for (const queue of queues) {
      try {
        offer(queue, devices);
      } catch (error) {
        const { fleetId, name } = queue.action;
        log.error(
          { err: error, fleet: fleetId, action: name, shard: index },
          'record could not be matched against the filter of an action; skipped',
        );
      }
    }
  }

  /** The devices that the queues ask for. Loaded in parallel, as some engines are a network away. */
  async #devicesOf(page: LogPage, queues: readonly ActionQueue[]): Promise<ReadonlyMap<DeviceKey, Device>> {
    const asked = new Set<DeviceKey>();
    for (const record of page.records) {
      if (queues.some((queue) => queue.intake.asksForDevice(record))) asked.add(record.device);
    }
    const devices = new Map<DeviceKey, Device>();
    await Promise.all(
      [...asked].map(async (device) => {
        const known = await this.#options.shards.of(device).device(device);
        if (known !== undefined) devices.set(device, known);
      }),
    );
    return devices;
  }

  /**
   * Logs that records were trimmed unseen. Retention by fleet cuts holes into the log, so whose records they were is
   * unknown.
   */
  #reportMissed(queue: ActionQueue, index: number, from: number): void {
    const missed = this.#missed.get(queue) ?? new Set();
    if (missed.has(index)) return;
    this.#missed.set(queue, missed.add(index));
    const { fleetId, name } = queue.action;
    this.#options.log.warn(
      { fleet: fleetId, action: name, shard: index, from },
      'records of unknown fleets were trimmed from the log before a held action had scanned them',
    );
  }
}
