import type { Log } from '../../core/telemetry/log.ts';
import type { ConsumerJournal } from '../records/consumer-tables.ts';
import { Consumers } from '../records/consumers.ts';
import type { LogReader } from '../records/log-reader.ts';
import type { ConsumerConfig } from './config.ts';
import { ConsumerControl } from './control.ts';

export interface ReadingOptions {
  journal: ConsumerJournal;
  reader: LogReader;
  config: ConsumerConfig;
  log: Log;
}

/** What reads records out of the logs for those who come again, on the main thread. */
export interface RunningReading {
  consumers: Consumers;
  control: ConsumerControl;
  /** Before the admin server ends: fetches that wait are answered. */
  stopWaiting(): void;
  /** Once nobody asks any more, before the journal is closed. */
  stop(): Promise<void>;
}

export async function startReading(options: ReadingOptions): Promise<RunningReading> {
  const consumers = await Consumers.open(options);
  return {
    consumers,
    control: new ConsumerControl(consumers, options.config),
    stopWaiting: () => consumers.stopWaiting(),
    stop: () => consumers.stop(),
  };
}
