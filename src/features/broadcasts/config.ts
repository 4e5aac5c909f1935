import { type ConfigOf, integer } from '../../core/config/config-key.ts';
import type { DomainConfig } from '../../domain/config.ts';

/** Limits of broadcasts. */
export const broadcastKeys = {
  broadcastMailsPerSecondMax: integer(
    { default: 10_000, minimum: 1, maximum: 1_000_000, isReloadable: true },
    'Mails per second of all broadcasts together; fleets take turns. Lower it if all devices answering at once are too much.',
  ),
  broadcastDevicesMax: integer(
    { default: 10_000, minimum: 1, maximum: 100_000 },
    'Devices in the list of one broadcast, which bounds the request body. Broadcasts by filters or to a fleet have no limit.',
  ),
  broadcastsRunningMax: integer(
    { default: 100, minimum: 1, maximum: 10_000, isReloadable: true },
    'Running and paused broadcasts, shared by fleets: one alone may use half. One more gets 409.',
  ),
  broadcastsPerFleetMax: integer(
    { default: 1_000, minimum: 1, maximum: 100_000, isReloadable: true },
    'Retained broadcasts per fleet. Beyond it, the one that ended first is removed.',
  ),
  broadcastRefusalsMax: integer(
    { default: 10_000, minimum: 0, maximum: 1_000_000, isReloadable: true },
    'Refusals listed per broadcast, with device and reason. Beyond it, they are only counted.',
  ),
  broadcastRetentionSeconds: integer(
    { default: 2_592_000, minimum: 60, maximum: 315_360_000, isReloadable: true },
    'Retention of ended broadcasts.',
  ),
};

export type BroadcastConfig = ConfigOf<typeof broadcastKeys> & DomainConfig;
