import type { NotReady } from '../core/telemetry/readiness.ts';
import type { Shards } from '../domain/shard.ts';

/** Reason why devices are not fully served, whatever the shard. */
export type ShardProblem = NotReady & { reason: 'disk_full' | 'store_refuses' };

/** All shards on the main thread, on either engine. */
export interface MainShards extends Shards {
  /** Sizes as the store counts them, at no cost. */
  sizes(): readonly { bytes: number; logBytes: number; devices: number; mails: number }[];
  devicesOf(shard: number): number;
  /** Devices with open event streams; undefined where the shard's worker counts them. */
  connectedOf(shard: number): number | undefined;
  problems(): readonly ShardProblem[];
  /** Undefined where it is not watched, or the databases' own affair. */
  diskFreeBytes(): number | undefined;
  close(): Promise<void>;
}
