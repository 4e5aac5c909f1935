import { ApiError } from '../../core/errors.ts';
import { formatUuid, parseUuid } from '../../core/uuid.ts';
import type { Page } from '../../domain/page.ts';
import type {
  BroadcastCounts,
  BroadcastRefusalCount,
  BroadcastRequest,
  BroadcastService,
  BroadcastStatus,
} from './broadcast-service.ts';
import type { ActiveJob } from './delivery/active-job.ts';
import type { Broadcaster } from './delivery/broadcaster.ts';
import type { JobKey } from './tables.ts';

/** Serves broadcasts to the admin API. */
export class LocalBroadcastService implements BroadcastService {
  readonly #broadcaster: Broadcaster;

  constructor(broadcaster: Broadcaster) {
    this.#broadcaster = broadcaster;
  }

  async put(
    fleetId: string,
    request: BroadcastRequest,
  ): Promise<{ status: BroadcastStatus; isReplay: boolean }> {
    const { key, isReplay } = await this.#broadcaster.put(fleetId, request);
    return { status: this.#status(key), isReplay };
  }

  list(fleetId: string, after: string | undefined, limit: number): Page<BroadcastStatus> {
    const before = after === undefined ? undefined : parseUuid(after);
    const { keys, hasMore } = this.#broadcaster.store.newest(fleetId, before, limit);
    const last = keys.at(-1);
    return {
      items: keys.flatMap((key) => this.#broadcaster.status(key) ?? []),
      next: hasMore && last !== undefined ? formatUuid(last[1]) : null,
    };
  }

  get(fleetId: string, id: string): BroadcastStatus {
    return this.#status(broadcastKeyOf(fleetId, id));
  }

  payload(fleetId: string, id: string): Uint8Array {
    const job = this.#broadcaster.store.job(broadcastKeyOf(fleetId, id));
    if (job === undefined) throw new ApiError('broadcast_not_found');
    return job.payload;
  }

  refusals(fleetId: string, id: string, after: string, limit: number): Page<BroadcastRefusalCount> {
    const key = broadcastKeyOf(fleetId, id);
    this.#status(key);
    return this.#broadcaster.store.refusals(key, after, limit);
  }

  pause(fleetId: string, id: string): Promise<BroadcastStatus> {
    return this.#change(fleetId, id, 'paused');
  }

  resume(fleetId: string, id: string): Promise<BroadcastStatus> {
    return this.#change(fleetId, id, 'running');
  }

  async cancel(fleetId: string, id: string): Promise<BroadcastStatus> {
    // Idempotent: the first answer may have been lost.
    const status = this.get(fleetId, id);
    return status.state === 'cancelled' ? status : this.#change(fleetId, id, 'cancelled');
  }

  async delete(fleetId: string, id: string): Promise<void> {
    const key = broadcastKeyOf(fleetId, id);
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
  ): Promise<BroadcastStatus> {
    const key = broadcastKeyOf(fleetId, id);
    this.#status(key);
    const active: ActiveJob | undefined = this.#broadcaster.job(key);
    if (active === undefined) throw new ApiError('broadcast_ended');
    await this.#broadcaster.change(active, state);
    return this.#status(key);
  }

  #status(key: JobKey): BroadcastStatus {
    const status = this.#broadcaster.status(key);
    if (status === undefined) throw new ApiError('broadcast_not_found');
    return status;
  }
}

/** @throws ApiError broadcast_not_found, for an id that is none. */
export function broadcastKeyOf(fleetId: string, id: string): JobKey {
  const bytes = parseUuid(id);
  if (bytes === undefined) throw new ApiError('broadcast_not_found');
  return [fleetId, bytes];
}
