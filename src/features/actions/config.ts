import { integer, reloadable, type ValuesOf } from '../../core/config/config-key.ts';
import type { DeclarationConfig } from '../../declarations/config.ts';
import type { DomainConfig } from '../../domain/config.ts';
import type { StorageConfig } from '../../storage/config.ts';

/** What actions may take of the server. */
export const actionKeys = {
  actionThreads: integer(
    2,
    1,
    64,
    'Threads that run actions; they are started with the first action. Raise it for actions that compute much, on spare cores.',
  ),
  actionCpuMilliseconds: reloadable(
    integer(500, 10, 60_000, 'Time that the code of one run of an action may compute.'),
  ),
  actionWallMilliseconds: reloadable(
    integer(5_000, 10, 600_000, 'Time that one run of an action may take in all.'),
  ),
  actionMemoryBytesMax: reloadable(
    integer(
      33_554_432,
      1_048_576,
      1_073_741_824,
      'Memory of one action on one thread. Raise it for one that parks runs with memory_exceeded.',
    ),
  ),
  actionWarmMemoryBytesMax: integer(
    67_108_864,
    0,
    17_179_869_184,
    'Memory of the actions that a thread keeps ready to run again, 0.5 MB for a small one; making one ready takes milliseconds. Raise it for hundreds of actions in turn.',
  ),
  actionMailsMax: reloadable(integer(1_000, 1, 100_000, 'Mails of one run of an action.')),
  actionRunsPerSecondMax: reloadable(
    integer(
      1_000,
      1,
      1_000_000,
      'Runs of one action, unless it says otherwise; what is more waits in the log.',
    ),
  ),
  actionQueueMax: reloadable(
    integer(
      1_000,
      1,
      100_000,
      'Records of one action that are in hand at once, which its devices share; what is more waits in the log. Raise it for actions that wait much for answers.',
    ),
  ),
  actionAttemptsMax: reloadable(integer(5, 1, 100, 'Attempts at a run that fails, before it is parked.')),
  actionRetryMilliseconds: reloadable(
    integer(
      1_000,
      10,
      3_600_000,
      'Time from the first attempt at a run to the second; it doubles with each, up to an hour.',
    ),
  ),
  actionParkedRunsMax: reloadable(
    integer(
      1_000,
      1,
      1_000_000,
      'Parked runs of one action, which its devices share; with so many no more are started until some are retried or dropped.',
    ),
  ),
  actionTestsMax: integer(
    100,
    1,
    10_000,
    'Tests and deployments of actions under way at once, which fleets share; one more is answered 503.',
  ),
  actionRunsKept: reloadable(
    integer(
      1_000,
      1,
      1_000_000,
      'Runs of one action that are kept to be looked at, and ten times as many lines of their log.',
    ),
  ),
  actionsPerFleetMax: reloadable(integer(100, 0, 10_000, 'Actions of one fleet.')),
};

export type ActionConfig = ValuesOf<typeof actionKeys> &
  DomainConfig &
  DeclarationConfig &
  Pick<StorageConfig, 'shardQueueMax' | 'shardQueueBytesMax'>;
