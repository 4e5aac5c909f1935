import { availableParallelism } from 'node:os';
import { type ConfigOf, integer } from '../core/config/config-key.ts';
import type { TelemetryConfig } from '../core/telemetry/config.ts';
import type { DeviceApiConfig } from '../device-api/config.ts';
import type { StorageConfig } from '../storage/config.ts';

/** One worker answers 70,000 heartbeats a second, costs less a request, and resumes every TLS session. */
const coresPerShard = 4;

/** Configuration of threads: how many, and when one counts as dead. */
export const threadKeys = {
  shards: integer(
    {
      default: Math.min(Math.ceil(availableParallelism() / coresPerShard), 256),
      minimum: 1,
      maximum: 256,
    },
    'Worker threads, each with a front end and one shard of the devices. A number other than that of the data folder reshards it at the start. Default: that of the data folder, or one for each 4 cores.',
  ),
  stallMilliseconds: integer(
    { default: 1_000, minimum: 100, maximum: 60_000, isReloadable: true },
    'Stall of an event loop that is logged and counted. Raise it on a machine that is often busy with other things.',
  ),
  stallEndSeconds: integer(
    { default: 30, minimum: 2, maximum: 3_600, isReloadable: true },
    'Stall of a thread that serves devices after which the process ends, to be restarted. Raise it where disks or virtual machines pause for longer.',
  ),
  mainStallEndSeconds: integer(
    { default: 120, minimum: 2, maximum: 3_600, isReloadable: true },
    'Stall of the main thread after which the process ends, to be restarted. Longer than stallEndSeconds, since devices are served meanwhile.',
  ),
  shutdownSeconds: integer(
    { default: 10, minimum: 1, maximum: 12, isReloadable: true },
    'Time for requests in flight to finish when the server stops. Must be less than what the supervisor waits.',
  ),
};

/** Everything a worker reads, for its front end and its shard. */
export type ThreadConfig = ConfigOf<typeof threadKeys> & DeviceApiConfig & StorageConfig & TelemetryConfig;
export type ThreadSettings = ThreadConfig['settings']['current'];
