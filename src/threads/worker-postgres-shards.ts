import type { StoreSetting } from '../storage/config.ts';
import { PostgresShards } from './postgres-shards.ts';
import type { WorkerShards, WorkerShardsOptions } from './worker-shards.ts';

/** PostgreSQL: this worker queries every database itself. @throws OperatorError, ApiError unavailable */
export async function openWorkerPostgresShards(
  { shards: urls }: StoreSetting & { engine: 'postgres' },
  options: WorkerShardsOptions,
): Promise<WorkerShards> {
  const shards = await PostgresShards.open({ urls, ...options });
  return {
    shards,
    serve: (_, { reject }) => reject(new Error('no thread owns a shard of a database')),
    notice() {},
    close: () => shards.close(),
  };
}
