import { integer } from '../../core/config/config-key.ts';

/** How long, and how much of, what devices send is kept. */
export const logKeys = {
  logRetentionSeconds: integer(
    2_592_000,
    60,
    315_360_000,
    'How long datapoints and messages stay in the ingest log, unless their fleet says otherwise.',
  ),
  logBytesMax: integer(
    0,
    0,
    16_384 * 1024 ** 3,
    'Largest size of the ingest log on disk, all shards together, each with its part. The oldest records go first. 0: half of the disk that is free or the shards have at the start; on databases, no limit.',
  ),
};
