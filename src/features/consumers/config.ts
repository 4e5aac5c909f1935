import { integer, type ValuesOf } from '../../core/config/config-key.ts';

/** What those who read records out may take of the server. */
export const consumerKeys = {
  recordStreamsMax: integer(
    32,
    1,
    10_000,
    'Open streams of records, followed or not, shared by fleets: one alone has half; one more is answered 503.',
  ),
  consumersPerFleetMax: integer(
    20,
    0,
    1_000,
    'Named consumers of one fleet, each of which reads the log for itself.',
  ),
  consumerFetchesMax: integer(
    256,
    1,
    100_000,
    'Fetches of consumers that wait for records at once, shared by fleets: one alone has half; one more is answered 503.',
  ),
};

export type ConsumerConfig = ValuesOf<typeof consumerKeys>;
