import { Consumers } from '../consume/consumers.ts';
import { ConsumerControl } from '../consume/control.ts';
import { LogReader } from '../consume/log-reader.ts';
import { Records } from '../consume/records.ts';
import type { ConsumerJournal } from '../consume/tables.ts';
import type { Config } from '../core/config.ts';
import type { Log } from '../core/log.ts';
import type { Shards } from './shards.ts';

export interface ReadingOptions {
  journal: ConsumerJournal;
  shards: Shards;
  config: Config;
  log: Log;
}

/** What reads records out of the logs, on the main thread. */
export interface RunningReading {
  records: Records;
  consumers: Consumers;
  control: ConsumerControl;
  /** Before the admin server ends: fetches that wait are answered. */
  stopWaiting(): void;
  /** Once nobody asks any more, before the journal is closed. */
  stop(): Promise<void>;
}

export async function startReading({
  journal,
  shards,
  config,
  log,
}: ReadingOptions): Promise<RunningReading> {
  const reader = new LogReader(shards.all, log);
  const consumers = await Consumers.open({ reader, journal, config, log });
  return {
    records: new Records({ reader, shards, config }),
    consumers,
    control: new ConsumerControl(consumers, config),
    stopWaiting: () => consumers.stopWaiting(),
    stop: () => consumers.stop(),
  };
}
