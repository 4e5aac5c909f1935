import type { Log } from '../core/telemetry/log.ts';
import type { WorkerMetrics } from '../core/telemetry/worker-metrics.ts';
import type { Fleets } from '../declarations/fleet.ts';
import type { Hold } from '../domain/hold.ts';
import type { Shards } from '../domain/shard.ts';
import type { Completion } from '../domain/write.ts';
import type { ThreadConfig } from './config.ts';
import type { Channel } from './relay/channel.ts';
import type { Call, Notice, WorkerStart } from './relay/messages.ts';

export interface WorkerShardsOptions {
  start: WorkerStart;
  config: ThreadConfig;
  fleets: Fleets;
  hold: Hold;
  metrics: WorkerMetrics;
  log: Log;
}

/** The shards on one worker thread, on either engine. */
export interface WorkerShards {
  shards: Shards;
  /** Calls of other threads to the shard of this worker. */
  serve(call: Call, completion: Completion<unknown>, channel: Channel): void;
  notice(notice: Notice, channel: Channel): void;
  /** Called when every worker has drained: nothing is written any more. */
  close(): Promise<void>;
}
