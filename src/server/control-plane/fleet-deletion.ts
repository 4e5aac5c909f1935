import { SingleFlight, sleep } from '../../core/async.ts';
import { deviceKeyOf } from '../../core/identity.ts';
import { type Log, logFailure } from '../../core/telemetry/log.ts';
import type { Shard } from '../../domain/shard.ts';
import type { Declarations } from './declarations.ts';
import { FleetRelease } from './fleet-release.ts';
import type { RemoteServices } from './remote-services.ts';

export interface FleetDeletionOptions extends Omit<Declarations, 'hold' | 'close' | 'follow'> {
  services: Pick<RemoteServices, 'consumers' | 'broadcasts'>;
  shards: readonly Shard[];
  /** See FleetRelease. */
  lateWriteMilliseconds: number;
  /** Nothing is removed meanwhile: a copy that has a device has its fleet too. */
  isBackupRunning(): boolean;
  log: Log;
}

const pollMs = 1_000;
/**
 * Time after which requests admitted before a fleet was marked, on another node too, have mostly ended, and are found
 * by another pass; those that have not, before its id is free again.
 */
const settledMs = 3_000;
/**
 * One write of a shard: so many devices, with so many mails unless it is one device. Some milliseconds of the shard's
 * thread, for which devices wait.
 */
const devicesMax = 16;
const mailsMax = 500;
/** Pause between two writes of a shard, longer than one takes: most of its time is for devices. */
const stepPauseMs = 10;
const broadcastsMax = 100;
/** Ends a run between two steps. */
const heldBack = new Error('held back');
/** Delay after a failed step. */
const retryMs = 10_000;

/**
 * Removes the fleets that are marked as being deleted, one after the other, on the main thread of the leader: step by
 * step, each a bounded write among those of others. Nothing else is remembered, so that a crash loses nothing: the next
 * start finds the mark, which goes last. The id of such a fleet is taken until its records have ended too.
 */
export class FleetDeletion {
  readonly #options: FleetDeletionOptions;
  readonly #running = new SingleFlight(() => this.#deleteAll());
  readonly #timer: NodeJS.Timeout;
  readonly #stopping = new AbortController();
  readonly #release: FleetRelease;

  constructor(options: FleetDeletionOptions) {
    this.#options = options;
    this.#release = new FleetRelease({
      ...options,
      removeDevices: (fleetId) => this.#devices(fleetId),
      proceed: () => this.#proceed(),
    });
    this.#timer = setInterval(() => void this.#running.run(), pollMs);
  }

  /** Ends after the current step; the rest is done after the next start. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#running.settled();
  }

  /** Called before each step. @throws heldBack: a later run, or the next start, goes on. */
  #proceed(): void {
    if (this.#stopping.signal.aborted || this.#options.isBackupRunning()) throw heldBack;
  }

  async #deleteAll(): Promise<void> {
    for (const fleetId of this.#options.registry.deleting()) {
      if (!(await this.#attempt(() => this.#delete(fleetId)))) return;
    }
    await this.#attempt(() => this.#release.run());
  }

  /** Returns false if it was held back. After a failure others have their turn; the next run tries again. */
  async #attempt(step: () => Promise<void>): Promise<boolean> {
    try {
      await step();
    } catch (error) {
      if (error === heldBack) return false;
      logFailure(this.#options.log, error, 'deleting a fleet failed; retrying');
      await sleep(retryMs, this.#stopping.signal);
    }
    return true;
  }

  async #delete(fleetId: string): Promise<void> {
    const { registry, log } = this.#options;
    for (let removed = 1; removed > 0; ) {
      const { deletingSinceMs = 0 } = registry.declared(fleetId);
      removed = await this.#pass(fleetId);
      const waitMs = deletingSinceMs + settledMs - Date.now();
      // Something may still come: another pass.
      if (waitMs > 0) {
        removed = 1;
        await sleep(Math.min(waitMs, settledMs), this.#stopping.signal);
      }
    }
    this.#proceed();
    await registry.retireFleet(fleetId);
    log.info({ fleet: fleetId }, 'fleet deleted');
  }

  /** Removes whatever there is now; returns how much. What acts by itself goes before what it acts on. */
  async #pass(fleetId: string): Promise<number> {
    const parts = [this.#claimTokens, this.#forwarders, this.#actions, this.#consumers, this.#broadcasts];
    let removed = 0;
    for (const part of [...parts, this.#devices, this.#tokens]) {
      removed += await part.call(this, fleetId);
    }
    return removed;
  }

  async #claimTokens(fleetId: string): Promise<number> {
    const { claimTokens } = this.#options;
    return this.#each(claimTokens.list(fleetId), ({ id }) => claimTokens.revoke(fleetId, id));
  }

  async #forwarders(fleetId: string): Promise<number> {
    const { forwarders } = this.#options;
    return this.#each(forwarders.list(fleetId), ({ name }) => forwarders.delete(fleetId, name));
  }

  async #actions(fleetId: string): Promise<number> {
    const { actions } = this.#options;
    return this.#each(actions.list(fleetId), ({ name }) => actions.delete(fleetId, name));
  }

  async #consumers(fleetId: string): Promise<number> {
    const { consumers } = this.#options.services;
    return this.#each(await consumers.list(fleetId), ({ name }) => consumers.delete(fleetId, name));
  }

  async #broadcasts(fleetId: string): Promise<number> {
    const { broadcasts } = this.#options.services;
    let removed = 0;
    let after: string | undefined;
    for (;;) {
      const { items, next } = await broadcasts.list(fleetId, after, broadcastsMax);
      removed += await this.#each(items, async ({ id, state }) => {
        if (state === 'running' || state === 'paused') await broadcasts.cancel(fleetId, id);
        await broadcasts.delete(fleetId, id);
      });
      if (next === null) return removed;
      after = next;
    }
  }

  async #devices(fleetId: string): Promise<number> {
    const { shards } = this.#options;
    const removed = await Promise.all(shards.map((shard) => this.#devicesOf(shard, fleetId)));
    return removed.reduce((sum, count) => sum + count, 0);
  }

  /** Goes on by id, not from the start: a device that cannot be removed must not keep the others. */
  async #devicesOf(shard: Shard, fleetId: string): Promise<number> {
    let removed = 0;
    let after = '';
    for (;;) {
      this.#proceed();
      const ids = await shard.devices.ids(fleetId, after, devicesMax);
      const taken: string[] = [];
      let mails = 0;
      for (const id of ids) {
        mails += await shard.mail.size(deviceKeyOf(fleetId, id));
        if (taken.length > 0 && mails > mailsMax) break;
        taken.push(id);
      }
      const last = taken.at(-1);
      if (last === undefined) return removed;
      const found = await Promise.all(taken.map((id) => shard.devices.delete(deviceKeyOf(fleetId, id))));
      removed += found.filter(Boolean).length;
      after = last;
      await sleep(stepPauseMs, this.#stopping.signal);
    }
  }

  async #tokens(fleetId: string): Promise<number> {
    const { tokens } = this.#options;
    const found = tokens.list().filter((token) => token.fleetId === fleetId);
    // A session goes with its parent.
    const revoke = async ({ id }: { id: string }): Promise<void> => {
      if (tokens.byId(id) !== undefined) await tokens.revoke(id);
    };
    return this.#each(found, revoke);
  }

  /** Removes one after the other, each in its own write; returns how many there were. */
  async #each<T>(found: readonly T[], remove: (one: T) => Promise<unknown>): Promise<number> {
    for (const one of found) {
      this.#proceed();
      await remove(one);
    }
    return found.length;
  }
}
