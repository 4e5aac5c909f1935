import type { Log } from '../../core/telemetry/log.ts';
import type { ConsumerJournal } from '../records/consumer-tables.ts';
import { Consumers } from '../records/consumers.ts';
import type { LogReader } from '../records/log-reader.ts';
import type { ConsumerConfig } from './config.ts';
import { LocalConsumerService } from './control.ts';

export interface OpenConsumersOptions {
  journal: ConsumerJournal;
  reader: LogReader;
  config: ConsumerConfig;
  log: Log;
}

/** Consumers at work on the main thread. */
export interface RunningConsumers {
  consumers: Consumers;
  control: LocalConsumerService;
  /** Answers waiting fetches. Call it before the admin server stops. */
  stopWaiting(): void;
  /** Call it after the last request and before the journal is closed. */
  stop(): Promise<void>;
}

export async function startConsumers(options: OpenConsumersOptions): Promise<RunningConsumers> {
  const consumers = await Consumers.open(options);
  return {
    consumers,
    control: new LocalConsumerService(consumers, options.config),
    stopWaiting: () => consumers.stopWaiting(),
    stop: () => consumers.stop(),
  };
}
