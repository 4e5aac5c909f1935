import { type ConfigOf, integer } from '../../core/config/config-key.ts';

/** Limits of record streams and consumers. */
export const consumerKeys = {
  recordStreamsMax: integer(
    { default: 32, minimum: 1, maximum: 10_000 },
    'Open record streams, shared by fleets: one alone may use half. One more gets 503.',
  ),
  consumersPerFleetMax: integer(
    { default: 20, minimum: 0, maximum: 1_000 },
    'Named consumers per fleet. Each reads the log separately.',
  ),
  consumerFetchesMax: integer(
    { default: 256, minimum: 1, maximum: 100_000 },
    'Consumer fetches waiting for records at once, shared by fleets: one alone may use half. One more gets 503.',
  ),
};

export type ConsumerConfig = ConfigOf<typeof consumerKeys>;
