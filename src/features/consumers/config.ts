import { type ConfigOf, integer } from '../../core/config/config-key.ts';

/** Limits of record streams and consumers. */
export const consumerKeys = {
  recordStreamsMax: integer(
    32,
    1,
    10_000,
    'Open record streams, shared by fleets: one alone may use half. One more gets 503.',
  ),
  consumersPerFleetMax: integer(20, 0, 1_000, 'Named consumers per fleet. Each reads the log separately.'),
  consumerFetchesMax: integer(
    256,
    1,
    100_000,
    'Consumer fetches waiting for records at once, shared by fleets: one alone may use half. One more gets 503.',
  ),
};

export type ConsumerConfig = ConfigOf<typeof consumerKeys>;
