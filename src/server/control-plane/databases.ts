import { randomBytes } from 'node:crypto';
import { sleep } from '../../core/async.ts';
import { ApiError, OperatorError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import type { Hold } from '../../domain/hold.ts';
import { checkUrl } from '../../storage/postgres/connection/database-url.ts';
import { PostgresShards } from '../../threads/postgres-shards.ts';
import type { RunningConfig } from '../configuration/config.ts';
import type { ControlPlane } from './control-plane.ts';
import { openShared } from './open-shared.ts';

/** Attempts to connect at start, to wait for a database that is being replaced. */
const attempts = 60;
const retryMilliseconds = 1_000;

export interface StartingNode {
  config: RunningConfig;
  /** Aborts the retries. */
  signal: AbortSignal;
  log: Log;
}

/** @throws OperatorError for an invalid URL. */
function urlsOf({ store }: RunningConfig): readonly string[] {
  if (store.engine !== 'postgres') throw new Error('the store is not in databases');
  for (const url of store.shards) checkUrl(url);
  return store.shards;
}

/** Opens the shared control plane once the first database answers. @throws OperatorError, also if it does not within a minute. */
export async function openSharedControlPlane({ config, signal, log }: StartingNode): Promise<ControlPlane> {
  const [url = ''] = urlsOf(config);
  const node = randomBytes(9).toString('hex');
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await openShared({ url, node, config, log });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (attempt === attempts) throw new OperatorError('The first database of the store does not answer.');
    }
    await sleep(retryMilliseconds, signal);
    signal.throwIfAborted();
  }
}

/** Opens the shards for the main thread, whose own writes are not counted in metrics. @throws OperatorError */
export async function openMainDatabases(params: {
  config: RunningConfig;
  fleets: Fleets;
  hold: Hold;
  log: Log;
}): Promise<PostgresShards> {
  const urls = urlsOf(params.config);
  const metrics = new WorkerMetrics([], WorkerMetrics.allocate([]));
  try {
    return await PostgresShards.open({ urls, metrics, ...params });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new OperatorError('A database of the store does not answer.');
  }
}
