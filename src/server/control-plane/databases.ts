import { randomBytes } from 'node:crypto';
import { sleep } from '../../core/async.ts';
import { ApiError, OperatorError } from '../../core/errors.ts';
import type { Log } from '../../core/telemetry/log.ts';
import { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import { checkUrl } from '../../storage/postgres/connection/database-url.ts';
import { DatabaseShards } from '../../threads/database-shards.ts';
import type { Config } from '../configuration/config.ts';
import type { ControlPlane } from './control-plane.ts';
import { openShared } from './open-shared.ts';

/** A server that starts while a database is being replaced waits for it. */
const attempts = 60;
const retryMilliseconds = 1_000;

export interface StartingNode {
  /** For its mirrors. */
  folder: string;
  config: Config;
  /** Ends the waiting. */
  signal: AbortSignal;
  log: Log;
}

/** @throws OperatorError for one that cannot be used. */
function urlsOf({ store }: Config): readonly string[] {
  if (store.engine !== 'postgres') throw new Error('the store is not in databases');
  for (const url of store.shards) checkUrl(url);
  return store.shards;
}

/** What nodes share, once the first database answers. @throws OperatorError, also when it does not in a minute. */
export async function openSharedControlPlane({
  folder,
  config,
  signal,
  log,
}: StartingNode): Promise<ControlPlane> {
  const [url = ''] = urlsOf(config);
  const node = randomBytes(9).toString('hex');
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await openShared({ url, folder, node, config, log });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (attempt === attempts) throw new OperatorError('The first database of the store does not answer.');
    }
    await sleep(retryMilliseconds, signal);
    signal.throwIfAborted();
  }
}

/** The shards as the main thread sees them. What it writes itself is counted by nobody. @throws OperatorError */
export async function openMainDatabases(given: {
  config: Config;
  fleets: Fleets;
  log: Log;
}): Promise<DatabaseShards> {
  const urls = urlsOf(given.config);
  const metrics = new WorkerMetrics([], WorkerMetrics.allocate([]));
  try {
    return await DatabaseShards.open({ urls, metrics, ...given });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new OperatorError('A database of the store does not answer.');
  }
}
