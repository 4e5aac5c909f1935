import { type ConfigOf, integer, reloadable } from '../../core/config/config-key.ts';
import type { DeclarationConfig } from '../../declarations/config.ts';
import type { DomainConfig } from '../../domain/config.ts';
import type { StorageConfig } from '../../storage/config.ts';

/** Limits of actions. */
export const actionKeys = {
  actionThreads: integer(
    2,
    1,
    64,
    'Threads that run actions, started with the first action. Raise it for CPU-heavy actions, given spare cores.',
  ),
  actionCpuMilliseconds: reloadable(integer(500, 10, 60_000, 'CPU time limit of one run of an action.')),
  actionWallMilliseconds: reloadable(
    integer(5_000, 10, 600_000, 'Wall-clock time limit of one run of an action.'),
  ),
  actionMemoryBytesMax: reloadable(
    integer(
      33_554_432,
      1_048_576,
      1_073_741_824,
      'Memory limit of one action on one thread. Raise it if runs fail with memory_exceeded.',
    ),
  ),
  actionWarmMemoryBytesMax: integer(
    67_108_864,
    0,
    17_179_869_184,
    'Memory per thread for actions kept warm, 0.5 MB for a small one; a cold start takes milliseconds. Raise it for hundreds of actions in turn.',
  ),
  actionMailsMax: reloadable(integer(1_000, 1, 100_000, 'Maximum mails of one run of an action.')),
  actionRunsPerSecondMax: reloadable(
    integer(1_000, 1, 1_000_000, 'Default rate limit of one action. Above it, records wait in the log.'),
  ),
  actionQueueMax: reloadable(
    integer(
      1_000,
      1,
      100_000,
      'Maximum records of one action in hand at once, shared by its devices. Further records wait in the log. Raise it for actions that spend their time waiting for answers.',
    ),
  ),
  actionAttemptsMax: reloadable(integer(5, 1, 100, 'Attempts at a run before it becomes a dead letter.')),
  actionRetryMilliseconds: reloadable(
    integer(
      1_000,
      10,
      3_600_000,
      'Delay before the second attempt at a run. Doubles with each attempt, up to an hour.',
    ),
  ),
  actionDeadLettersMax: reloadable(
    integer(
      1_000,
      1,
      1_000_000,
      'Maximum dead letters of one action, shared by its devices. At the limit no runs start until some are replayed or dropped.',
    ),
  ),
  actionTestsMax: integer(
    100,
    1,
    10_000,
    'Maximum concurrent tests and deployments of actions, shared by fleets. Further ones get 503.',
  ),
  actionRunsKept: reloadable(
    integer(1_000, 1, 1_000_000, 'Retained runs of one action, with ten times as many log lines.'),
  ),
  actionStateKeysMax: reloadable(
    integer(
      1_000,
      1,
      100_000,
      'Maximum keys in the state of one action. What an action stores per device belongs in records.',
    ),
  ),
  actionStateValueBytesMax: reloadable(
    integer(4_096, 1, 65_536, 'Maximum size of one value in the state of an action, as JSON.'),
  ),
  actionsPerFleetMax: reloadable(integer(100, 0, 10_000, 'Maximum actions of one fleet.')),
};

export type ActionConfig = ConfigOf<typeof actionKeys> &
  DomainConfig &
  DeclarationConfig &
  Pick<StorageConfig, 'settings'>;
