import { type ConfigOf, integer } from '../../core/config/config-key.ts';
import type { DeclarationConfig } from '../../declarations/config.ts';
import type { DomainConfig } from '../../domain/config.ts';
import type { StorageConfig } from '../../storage/config.ts';

/** Limits of actions. */
export const actionKeys = {
  actionThreads: integer(
    { default: 2, minimum: 1, maximum: 64 },
    'Threads that run actions, started with the first action. Raise it for CPU-heavy actions, given spare cores.',
  ),
  actionCpuMilliseconds: integer(
    { default: 500, minimum: 10, maximum: 60_000, isReloadable: true },
    'CPU time limit of one run of an action.',
  ),
  actionWallMilliseconds: integer(
    { default: 5_000, minimum: 10, maximum: 600_000, isReloadable: true },
    'Wall-clock time limit of one run of an action.',
  ),
  actionMemoryBytesMax: integer(
    { default: 33_554_432, minimum: 1_048_576, maximum: 1_073_741_824, isReloadable: true },
    'Memory limit of one action on one thread. Raise it if runs fail with memory_exceeded.',
  ),
  actionWarmMemoryBytesMax: integer(
    { default: 67_108_864, minimum: 0, maximum: 17_179_869_184 },
    'Memory per thread for actions kept warm, 0.5 MB for a small one; a cold start takes milliseconds. Raise it for hundreds of actions in turn.',
  ),
  actionMailsMax: integer(
    { default: 1_000, minimum: 1, maximum: 100_000, isReloadable: true },
    'Maximum mails of one run of an action.',
  ),
  actionReadsMax: integer(
    { default: 1_000, minimum: 1, maximum: 100_000, isReloadable: true },
    'Maximum devices and keys of its state that one run of an action reads.',
  ),
  actionReadsPerSecondMax: integer(
    { default: 5_000, minimum: 1, maximum: 1_000_000, isReloadable: true },
    'Rate limit of what the actions of one fleet read together, as of actionReadsMax. Above it, runs wait.',
  ),
  actionRunsPerSecondMax: integer(
    { default: 1_000, minimum: 1, maximum: 1_000_000, isReloadable: true },
    'Default rate limit of one action. Above it, records wait in the log.',
  ),
  actionQueueMax: integer(
    { default: 1_000, minimum: 1, maximum: 100_000, isReloadable: true },
    'Maximum records of one action in hand at once, shared by its devices. Further records wait in the log. Raise it for actions that spend their time waiting for answers.',
  ),
  actionAttemptsMax: integer(
    { default: 5, minimum: 1, maximum: 100, isReloadable: true },
    'Attempts at a run before it becomes a dead letter.',
  ),
  actionRetryMilliseconds: integer(
    { default: 1_000, minimum: 10, maximum: 3_600_000, isReloadable: true },
    'Delay before the second attempt at a run. Doubles with each attempt, up to an hour.',
  ),
  actionDeadLettersMax: integer(
    { default: 1_000, minimum: 1, maximum: 1_000_000, isReloadable: true },
    'Maximum dead letters of one action, shared by its devices. At the limit no runs start until some are replayed or dropped.',
  ),
  actionDeadLetterBytesMax: integer(
    { default: 67_108_864, minimum: 1, maximum: 1_099_511_627_776, isReloadable: true },
    'Maximum bytes of them, shared and reached like actionDeadLettersMax.',
  ),
  actionTestsMax: integer(
    { default: 100, minimum: 1, maximum: 10_000 },
    'Maximum concurrent tests and deployments of actions, shared by fleets. Further ones get 503.',
  ),
  actionRunsKept: integer(
    { default: 1_000, minimum: 1, maximum: 1_000_000, isReloadable: true },
    'Retained runs of one action, with ten times as many log lines.',
  ),
  actionStateKeysMax: integer(
    { default: 1_000, minimum: 1, maximum: 100_000, isReloadable: true },
    'Maximum keys in the state of one action. What an action stores per device belongs in records.',
  ),
  actionStateValueBytesMax: integer(
    { default: 4_096, minimum: 1, maximum: 65_536, isReloadable: true },
    'Maximum size of one value in the state of an action, as JSON.',
  ),
  actionsPerFleetMax: integer(
    { default: 100, minimum: 0, maximum: 10_000, isReloadable: true },
    'Maximum actions of one fleet.',
  ),
};

export type ActionConfig = ConfigOf<typeof actionKeys> &
  DomainConfig &
  DeclarationConfig &
  Pick<StorageConfig, 'settings'>;
