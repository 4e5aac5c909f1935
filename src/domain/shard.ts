import type { DeviceKey } from '../core/identity.ts';
import type { ShardDevices } from './devices/shard-devices.ts';
import type { ShardDeadLetters, ShardDedupe, ShardMail } from './mail/shard-mail.ts';
import type { ShardLog } from './records/shard-log.ts';
import type { ShardStreams } from './shard-streams.ts';
import type { Sync, SyncOutcome } from './sync/sync.ts';

/**
 * All devices of one shard with their data, by roles. Every implementation passes one contract suite. Reads may answer
 * synchronously (LMDB, no promise on the hot path) or asynchronously (an engine across the network). Writes settle
 * when durable (D19), and reject with `unavailable` when they cannot be accepted, or after the shard is closed.
 * Concurrent writes are unordered. Read-your-writes on the answering node; other nodes are eventually consistent.
 */
export interface Shard {
  /** True if a write would be accepted now; checked before a body is read. */
  accepts(): boolean;
  readonly devices: ShardDevices;
  readonly mail: ShardMail;
  readonly deadLetters: ShardDeadLetters;
  readonly log: ShardLog;
  readonly streams: ShardStreams;
  readonly dedupe: ShardDedupe;
  /**
   * Stores the records, settles, and reads the front of the mailbox behind it, in one transaction: nothing of it is
   * stored if it rejects. Records that the device's queue has already are left out (D30).
   */
  sync(sync: Sync): Promise<SyncOutcome>;
}

/** The shards of all devices. */
export interface Shards {
  of(device: DeviceKey): Shard;
  readonly all: readonly Shard[];
}
