import { ApiError } from '../../core/errors.ts';
import { formatUuid, parseUuid } from '../../core/uuid.ts';
import type { Page } from '../../domain/page.ts';
import type { ActiveJob } from './delivery/active-job.ts';
import type { Broadcaster } from './delivery/broadcaster.ts';
import { newScanBudget, type OutcomeCounter } from './outcomes.ts';
import type {
  BroadcastCounts,
  BroadcastRefusalCount,
  BroadcastRequest,
  BroadcastService,
  BroadcastStatus,
  CountedBroadcast,
} from './service.ts';
import type { JobKey } from './tables.ts';

/** Serves broadcasts to the admin API. */
export class LocalBroadcastService implements BroadcastService {
  readonly #broadcaster: Broadcaster;
  readonly #outcomes: OutcomeCounter;

  constructor(broadcaster: Broadcaster, outcomes: OutcomeCounter) {
    this.#broadcaster = broadcaster;
    this.#outcomes = outcomes;
  }

  async put(
    fleetId: string,
    request: BroadcastRequest,
  ): Promise<{ status: CountedBroadcast; isReplay: boolean }> {
    const { key, isReplay } = await this.#broadcaster.put(fleetId, request);
    return { status: await this.#counted(this.#status(key)), isReplay };
  }

  async list(fleetId: string, after: string | undefined, limit: number): Promise<Page<CountedBroadcast>> {
    const before = after === undefined ? undefined : parseUuid(after);
    const { keys, hasMore } = this.#broadcaster.store.newest(fleetId, before, limit);
    const last = keys.at(-1);
    const budget = newScanBudget();
    const items: CountedBroadcast[] = [];
    for (const key of keys) {
      const status = this.#broadcaster.status(key);
      if (status !== undefined) items.push(await this.#counted(status, budget));
    }
    return {
      items,
      next: hasMore && last !== undefined ? formatUuid(last[1]) : null,
    };
  }

  async get(fleetId: string, id: string): Promise<CountedBroadcast> {
    return this.#counted(this.#status(keyOf(fleetId, id)));
  }

  refusals(fleetId: string, id: string, after: string, limit: number): Page<BroadcastRefusalCount> {
    const key = keyOf(fleetId, id);
    this.#status(key);
    return this.#broadcaster.store.refusals(key, after, limit);
  }

  pause(fleetId: string, id: string): Promise<CountedBroadcast> {
    return this.#change(fleetId, id, 'paused');
  }

  resume(fleetId: string, id: string): Promise<CountedBroadcast> {
    return this.#change(fleetId, id, 'running');
  }

  async cancel(fleetId: string, id: string): Promise<CountedBroadcast> {
    // Idempotent: the first answer may have been lost.
    const status = await this.get(fleetId, id);
    return status.state === 'cancelled' ? status : this.#change(fleetId, id, 'cancelled');
  }

  async delete(fleetId: string, id: string): Promise<void> {
    const key = keyOf(fleetId, id);
    this.#status(key);
    if (this.#broadcaster.job(key) !== undefined) throw new ApiError('broadcast_running');
    await this.#broadcaster.store.remove(key);
  }

  get active(): number {
    return this.#broadcaster.active;
  }

  get counts(): BroadcastCounts {
    return this.#broadcaster.counts;
  }

  async #change(
    fleetId: string,
    id: string,
    state: 'running' | 'paused' | 'cancelled',
  ): Promise<CountedBroadcast> {
    const key = keyOf(fleetId, id);
    this.#status(key);
    const active: ActiveJob | undefined = this.#broadcaster.job(key);
    if (active === undefined) throw new ApiError('broadcast_ended');
    await this.#broadcaster.change(active, state);
    return this.#counted(this.#status(key));
  }

  async #counted(status: BroadcastStatus, budget = newScanBudget()): Promise<CountedBroadcast> {
    return { ...status, outcomes: await this.#outcomes.outcomesOf(status, budget) };
  }

  #status(key: JobKey): BroadcastStatus {
    const status = this.#broadcaster.status(key);
    if (status === undefined) throw new ApiError('broadcast_not_found');
    return status;
  }
}

/** @throws ApiError broadcast_not_found. */
function keyOf(fleetId: string, id: string): JobKey {
  const bytes = parseUuid(id);
  if (bytes === undefined) throw new ApiError('broadcast_not_found');
  return [fleetId, bytes];
}
