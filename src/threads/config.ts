import { availableParallelism } from 'node:os';
import { integer, reloadable, type ValuesOf } from '../core/config/config-key.ts';
import type { TelemetryConfig } from '../core/telemetry/config.ts';
import type { DeviceApiConfig } from '../device-api/config.ts';
import type { StorageConfig } from '../storage/config.ts';

/** How many threads there are, and when one is taken for dead. */
export const threadKeys = {
  shards: integer(
    Math.min(availableParallelism(), 256),
    1,
    256,
    'Worker threads, each with a front end and one shard of the devices. Another number than the data folder has moves it first. Default: the number of cores, or what the data folder has.',
  ),
  stallMilliseconds: reloadable(
    integer(
      1_000,
      100,
      60_000,
      'An event loop that stands still for longer is logged and counted. Raise it on a machine that is often busy with other things.',
    ),
  ),
  stallEndSeconds: reloadable(
    integer(
      30,
      2,
      3_600,
      'A thread that has stood still for this long ends the process, which is started again. Raise it where disks or virtual machines pause for longer.',
    ),
  ),
  shutdownSeconds: reloadable(
    integer(
      10,
      1,
      12,
      'Time requests in flight have to finish when the server stops. Less than whoever stops it waits.',
    ),
  ),
};

/** All that a worker reads: of its front end and its shard too. */
export type ThreadConfig = ValuesOf<typeof threadKeys> & DeviceApiConfig & StorageConfig & TelemetryConfig;
