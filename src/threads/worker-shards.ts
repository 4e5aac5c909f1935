import type { Log } from '../core/telemetry/log.ts';
import type { WorkerMetrics } from '../core/telemetry/worker-metrics.ts';
import type { Fleets } from '../declarations/fleet.ts';
import type { Completion } from '../domain/write.ts';
import type { ThreadConfig } from './config.ts';
import type { Channel } from './relay/channel.ts';
import type { Call, Notice, WorkerStart } from './relay/messages.ts';
import type { Shards } from './shards.ts';

export interface WorkerShardsOptions {
  start: WorkerStart;
  config: ThreadConfig;
  fleets: Fleets;
  metrics: WorkerMetrics;
  log: Log;
}

/** The shards of a server as one worker thread has them, on either engine. */
export interface WorkerShards {
  shards: Pick<Shards, 'all' | 'of'>;
  /** What the main thread asks of the shard of this worker, and says of it. */
  serve(call: Call, completion: Completion<unknown>, channel: Channel): void;
  notice(notice: Notice, channel: Channel): void;
  /** Every worker has drained: nothing will be written any more. */
  close(): Promise<void>;
}
