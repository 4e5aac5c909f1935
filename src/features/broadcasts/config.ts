import { type ConfigOf, integer, reloadable } from '../../core/config/config-key.ts';
import type { DomainConfig } from '../../domain/config.ts';

/** Limits of broadcasts. */
export const broadcastKeys = {
  broadcastMailsPerSecondMax: reloadable(
    integer(
      10_000,
      1,
      1_000_000,
      'Mails per second of all broadcasts together; fleets take turns. Lower it if all devices answering at once are too much.',
    ),
  ),
  broadcastDevicesMax: integer(
    10_000,
    1,
    100_000,
    'Devices in the list of one broadcast, which bounds the request body. Broadcasts to a tag or a fleet have no limit.',
  ),
  broadcastsRunningMax: reloadable(
    integer(
      100,
      1,
      10_000,
      'Running and paused broadcasts, shared by fleets: one alone may use half. One more gets 409.',
    ),
  ),
  broadcastsPerFleetMax: reloadable(
    integer(
      1_000,
      1,
      100_000,
      'Retained broadcasts per fleet. Beyond it, the one that ended first is removed.',
    ),
  ),
  broadcastRefusalsMax: reloadable(
    integer(
      10_000,
      0,
      1_000_000,
      'Refusals listed per broadcast, with device and reason. Beyond it, they are only counted.',
    ),
  ),
  broadcastRetentionSeconds: reloadable(
    integer(2_592_000, 60, 315_360_000, 'Retention of ended broadcasts.'),
  ),
};

export type BroadcastConfig = ConfigOf<typeof broadcastKeys> & DomainConfig;
