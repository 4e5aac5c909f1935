import { integer, reloadable, type ValuesOf } from '../../core/config/config-key.ts';
import type { DomainConfig } from '../../domain/config.ts';

/** What broadcasts may take of the server. */
export const broadcastKeys = {
  broadcastMailsPerSecondMax: reloadable(
    integer(
      10_000,
      1,
      1_000_000,
      'Mails a second that all broadcasts together put into mailboxes; fleets take turns. Lower it where devices that all answer are too much.',
    ),
  ),
  broadcastDevicesMax: integer(
    10_000,
    1,
    100_000,
    'Devices in the list of one broadcast, whose body grows with it; a tag or a fleet may have any number.',
  ),
  broadcastsRunningMax: reloadable(
    integer(
      100,
      1,
      10_000,
      'Broadcasts that run or are paused at once, shared by fleets: one alone has half; one more is answered 409.',
    ),
  ),
  broadcastsPerFleetMax: reloadable(
    integer(1_000, 1, 100_000, 'Broadcasts of one fleet that are kept; the one that ended first makes room.'),
  ),
  broadcastRefusalsMax: reloadable(
    integer(
      10_000,
      0,
      1_000_000,
      'Devices of one broadcast that are kept with why they did not get it; more are counted only.',
    ),
  ),
  broadcastRetentionSeconds: reloadable(
    integer(2_592_000, 60, 315_360_000, 'How long a broadcast that has ended is kept to be looked at.'),
  ),
};

export type BroadcastConfig = ValuesOf<typeof broadcastKeys> & DomainConfig;
