import type { MailBytesMax } from '../../../src/domain/mail/mail-bytes.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import type { Config } from '../../../src/server/configuration/config.ts';
import { lmdbEngine } from './lmdb-engine.ts';
import { postgresEngine } from './postgres-engine.ts';

/** The settings that what a shard answers depends on. */
export type EngineOptions = Partial<
  Pick<
    Config,
    | 'idempotencyWindowSeconds'
    | 'idempotencySkewSeconds'
    | 'delayedMailsPerDeviceMax'
    | 'receiptRetentionSeconds'
    | 'deadLetterRetentionSeconds'
    | 'deadLettersPerFleetMax'
    | 'logRetentionSeconds'
    | 'streamsPerDeviceMax'
    | 'shardQueueMax'
    | 'shardQueueBytesMax'
  >
> & { sweepMilliseconds?: number; mailBytesMax?: MailBytesMax };

/** A store that is open, of which the tests know the seam alone. */
export interface OpenEngine {
  /** Another object after `reopen`. */
  readonly shard: Shard;
  /** The same store as another front end has it: another thread, or another node, which may be some moments behind. */
  readonly elsewhere: Shard;
  /** An orderly close, and the same store again with its options changed so. */
  reopen(changed?: EngineOptions): Promise<void>;
  /** `shard` may be asked for writes afterwards, and refuses them. To close it again does nothing. */
  close(): Promise<void>;
  /** Removes a store that is closed: nothing stays of it. */
  remove(): Promise<void>;
}

/** One implementation of the seam. */
export interface Engine {
  name: string;
  /**
   * An empty store. What is not given is as the config has it by default. What is over when a store is opened again goes
   * within some seconds.
   */
  open(options?: EngineOptions): Promise<OpenEngine>;
}

/** All that must pass this suite. */
export const engines: readonly Engine[] = [lmdbEngine, postgresEngine];
