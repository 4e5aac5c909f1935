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
  lanes(): Iterable<ActionQueue>;
  /** Whether more may be taken in hand now. */
  mayTake(): boolean;
}

/** Pages from one position in one look. */
const pagesPerLook = 4;
/** What a look may take before the thread's other work has its turn. */
const lookMsMax = 10;

/** Goes through the logs of all shards for all lanes, each from where it is. */
export class LogScanner {
  readonly #options: ScannerOptions;
  /** By lane the shards that it has missed records of: told once, until it has caught up there. */
  readonly #missed = new WeakMap<ActionQueue, Set<number>>();

  constructor(options: ScannerOptions) {
    this.#options = options;
  }

  /** One look at every log. Answers whether there was anything. */
  async look(): Promise<boolean> {
    let hasFound = false;
    for (const { intake } of this.#options.lanes()) intake.makeRoom();
    let sinceMs = performance.now();
    for (const reading of this.#readings()) {
      for (let pages = 0; pages < pagesPerLook; pages += 1) {
        if (!(await reading())) break;
        hasFound = true;
        if (performance.now() - sinceMs < lookMsMax) continue;
        await yieldToEventLoop();
        sinceMs = performance.now();
      }
    }
    return hasFound;
  }

  /** Each reads a page, and the one behind it the next time; it answers whether there was one. */
  *#readings(): Generator<() => Promise<boolean>> {
    for (const [shard] of this.#options.shards.all.entries()) {
      for (const position of this.#positions(shard)) {
        let from: number | undefined = position;
        yield async () => {
          from = from === undefined ? undefined : await this.#readPage(shard, from);
          return from !== undefined;
        };
      }
      for (const lane of this.#options.lanes()) yield () => this.#readAgain(shard, lane);
    }
  }

  /**
   * Where to look in the log of that shard: where each of the lanes is, so that one that is far behind holds up no
   * other. Those that have caught up are all at one place.
   */
  #positions(index: number): ReadonlySet<number> {
    const positions = new Set<number>();
    for (const lane of this.#options.lanes()) {
      if (lane.intake.wants(index)) positions.add(lane.intake.progress[index]?.scanned ?? 0);
    }
    return positions;
  }

  /** Answers where to go on; undefined where nothing stands from there on, or nobody wants it. */
  async #readPage(index: number, from: number): Promise<number | undefined> {
    const { shards, lanes, mayTake } = this.#options;
    if (!mayTake()) return undefined;
    const wanting = [...lanes()].filter(
      ({ intake }) => intake.wants(index) && intake.progress[index]?.scanned === from,
    );
    if (wanting.length === 0) return undefined;
    const page = await shards.all[index]?.records(from);
    if (page === undefined) return undefined;
    if (page.next === from) {
      for (const lane of wanting) {
        lane.intake.passGap(index, from);
        this.#missed.get(lane)?.delete(index);
      }
      return undefined;
    }
    await this.#offer(index, from, page, wanting, ({ intake }, devices) =>
      intake.offer(index, page, devices),
    );
    return page.next;
  }

  /** For devices that a lane has left behind, from where the first of them goes on. Answers whether there was one. */
  async #readAgain(index: number, lane: ActionQueue): Promise<boolean> {
    const { shards, mayTake } = this.#options;
    const from = mayTake() ? lane.intake.wantsAgain(index) : undefined;
    const page = from === undefined ? undefined : await shards.all[index]?.records(from);
    if (from === undefined || page === undefined) return false;
    // All that the others have passed may have been trimmed meanwhile.
    const found = page.next === from ? { ...page, next: Number.POSITIVE_INFINITY } : page;
    await this.#offer(index, from, page, [lane], ({ intake }, devices) =>
      intake.offerAgain(index, from, found, devices),
    );
    return true;
  }

  async #offer(
    index: number,
    from: number,
    page: LogPage,
    lanes: readonly ActionQueue[],
    offer: (lane: ActionQueue, devices: ReadonlyMap<DeviceKey, Device>) => void,
  ): Promise<void> {
    const { log } = this.#options;
    if (page.damaged) {
      log.error({ shard: index, position: from }, 'actions: a damaged batch of the log is passed over');
    }
    if (!page.damaged && page.next - from > page.records.length) {
      for (const lane of lanes) this.#tellMissed(lane, index, from);
    }
    const devices = await this.#devicesOf(page, lanes);
    for (const lane of lanes) {
      try {
        offer(lane, devices);
      } catch (error) {
        const { fleetId, name } = lane.action;
        log.error(
          { err: error, fleet: fleetId, action: name, shard: index },
          'a record cannot be matched with an action, which passes over it',
        );
      }
    }
  }

  /** The devices that the lanes ask for, as they are now: all at once, for some engines are a network away. */
  async #devicesOf(page: LogPage, lanes: readonly ActionQueue[]): Promise<ReadonlyMap<DeviceKey, Device>> {
    const asked = new Set<DeviceKey>();
    for (const record of page.records) {
      if (lanes.some((lane) => lane.intake.asksForDevice(record))) asked.add(record.device);
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

  /** Retention by fleet cuts holes into what stands in the log, so whose records they were is not known. */
  #tellMissed(lane: ActionQueue, index: number, from: number): void {
    const missed = this.#missed.get(lane) ?? new Set();
    if (missed.has(index)) return;
    this.#missed.set(lane, missed.add(index));
    const { fleetId, name } = lane.action;
    this.#options.log.warn(
      { fleet: fleetId, action: name, shard: index, from },
      'records, of whatever fleet, were trimmed from the log before an action that was held up had looked at them',
    );
  }
}
