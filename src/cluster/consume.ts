import { Consumers } from '../consume/consumers.ts';
import { ConsumerControl } from '../consume/control.ts';
import type { LogReader } from '../consume/log-reader.ts';
import type { ConsumerJournal } from '../consume/tables.ts';
import type { Config } from '../core/config.ts';
import type { Log } from '../core/log.ts';

export interface ReadingOptions {
  journal: ConsumerJournal;
  reader: LogReader;
  config: Config;
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
