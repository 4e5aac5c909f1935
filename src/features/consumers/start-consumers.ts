import type { Log } from '../../core/telemetry/log.ts';
import type { Journal } from '../../storage/tables/journal.ts';
import type { LogFollower } from '../records/log-follower.ts';
import type { ConsumerConfig } from './config.ts';
import { Consumers } from './consumers.ts';
import { LocalConsumerService } from './local-consumer-service.ts';

export interface OpenConsumersOptions {
  journal: Journal;
  follower: LogFollower;
  config: ConsumerConfig;
  log: Log;
}

/** Consumers at work on the main thread. */
export interface RunningConsumers {
  consumers: Consumers;
  service: LocalConsumerService;
  /** Answers waiting fetches. Call it before the admin server stops. */
  stopWaiting(): void;
  /** Call it after the last request and before the journal is closed. */
  stop(): Promise<void>;
}

export async function startConsumers(options: OpenConsumersOptions): Promise<RunningConsumers> {
  const consumers = await Consumers.open(options);
  return {
    consumers,
    service: new LocalConsumerService(consumers, options.config),
    stopWaiting: () => consumers.stopWaiting(),
    stop: () => consumers.stop(),
  };
}
