import { availableParallelism } from 'node:os';
import { type ConfigOf, integer, reloadable } from '../core/config/config-key.ts';
import type { TelemetryConfig } from '../core/telemetry/config.ts';
import type { DeviceApiConfig } from '../device-api/config.ts';
import type { StorageConfig } from '../storage/config.ts';

/** Configuration of threads: how many, and when one counts as dead. */
export const threadKeys = {
  shards: integer(
    Math.min(availableParallelism(), 256),
    1,
    256,
    'Worker threads, each with a front end and one shard of the devices. A number other than that of the data folder reshards it at the start. Default: that of the data folder, or the number of cores.',
  ),
  stallMilliseconds: reloadable(
    integer(
      1_000,
      100,
      60_000,
      'Stall of an event loop that is logged and counted. Raise it on a machine that is often busy with other things.',
    ),
  ),
  stallEndSeconds: reloadable(
    integer(
      30,
      2,
      3_600,
      'Stall of a thread after which the process ends, to be restarted. Raise it where disks or virtual machines pause for longer.',
    ),
  ),
  shutdownSeconds: reloadable(
    integer(
      10,
      1,
      12,
      'Time for requests in flight to finish when the server stops. Must be less than what the supervisor waits.',
    ),
  ),
};

/** Everything a worker reads, for its front end and its shard. */
export type ThreadConfig = ConfigOf<typeof threadKeys> & DeviceApiConfig & StorageConfig & TelemetryConfig;
export type ThreadSettings = ThreadConfig['settings']['current'];
