import { deviceKeyOf } from '../../core/identity.ts';
import type { Log } from '../../core/telemetry/log.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Shard } from '../../domain/shard.ts';
import { LeftRecords } from './left-records.ts';

export interface FleetReleaseOptions {
  registry: Registry;
  shards: readonly Shard[];
  /** Within this time whatever another thread or node was writing as the fleet was deleted is stored or refused. */
  lateWriteMilliseconds: number;
  /** Removes the devices of a fleet, and returns how many there were. */
  removeDevices(fleetId: string): Promise<number>;
  /** Called before each step; throws to end it. */
  proceed(): void;
  log: Log;
}

/** Retention removes records, and sweeps dead letters, once a minute. */
const checkMs = 60_000;
/** Device id that no device needs to have: it would be one to remove. */
const nobody = 'NOBODY0000';

/** A retired fleet, as far as it has been looked at since the start. */
interface Looked {
  /** When it was seen first. */
  sinceMs: number;
  /** True if nothing can come any more. */
  isSettled: boolean;
  nextMs: number;
}

/**
 * Gives the ids of deleted fleets free, each once nothing of it is left: no record, no dead letter, and no device that
 * was being created as the fleet was deleted. A new fleet of that id would have all of them.
 */
export class FleetRelease {
  readonly #options: FleetReleaseOptions;
  readonly #records: LeftRecords;
  readonly #looked = new Map<string, Looked>();

  constructor(options: FleetReleaseOptions) {
    this.#options = options;
    this.#records = new LeftRecords(options.shards);
  }

  /** Looks at the fleets whose time it is. @throws what `proceed` throws, ApiError unavailable. */
  async run(): Promise<void> {
    const { registry, log, proceed } = this.#options;
    const due: string[] = [];
    for (const fleetId of registry.retired()) if (await this.#isDue(fleetId)) due.push(fleetId);
    if (due.length === 0) return;
    for (const fleetId of await this.#records.without(due, proceed)) {
      if (await this.#hasMore(fleetId)) continue;
      proceed();
      await registry.releaseFleet(fleetId);
      this.#looked.delete(fleetId);
      this.#records.forget(fleetId);
      log.info({ fleet: fleetId }, 'id of a deleted fleet is free again');
    }
  }

  async #isDue(fleetId: string): Promise<boolean> {
    const nowMs = performance.now();
    const looked = this.#looked.get(fleetId) ?? { sinceMs: nowMs, isSettled: false, nextMs: 0 };
    this.#looked.set(fleetId, looked);
    if (nowMs < looked.nextMs || nowMs < looked.sinceMs + this.#options.lateWriteMilliseconds) return false;
    looked.nextMs = nowMs + checkMs;
    if (!looked.isSettled) await this.#settle(fleetId);
    looked.isSettled = true;
    return true;
  }

  /**
   * Waits for a write of its own to each shard. An embedded one has a single writer, which takes them in order, so
   * that what it had before is stored by then, however long its disk stood still.
   */
  async #settle(fleetId: string): Promise<void> {
    this.#options.proceed();
    const { shards } = this.#options;
    await Promise.all(shards.map((shard) => shard.devices.delete(deviceKeyOf(fleetId, nobody))));
  }

  async #hasMore(fleetId: string): Promise<boolean> {
    const { shards, removeDevices } = this.#options;
    if ((await removeDevices(fleetId)) > 0) return true;
    for (const shard of shards) if (await this.#hasLetters(shard, fleetId)) return true;
    return false;
  }

  async #hasLetters({ deadLetters }: Shard, fleetId: string): Promise<boolean> {
    for (let after: string | null = ''; after !== null; ) {
      this.#options.proceed();
      const { items, next } = await deadLetters.list(fleetId, {}, after, 1);
      if (items.length > 0) return true;
      after = next;
    }
    return false;
  }
}
