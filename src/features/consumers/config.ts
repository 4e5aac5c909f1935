import { integer, type ValuesOf } from '../../core/config/config-key.ts';

/** What those who read records out may take of the server. */
export const consumerKeys = {
  recordStreamsMax: integer(
    32,
    1,
    10_000,
    'Open streams of records, followed or not, shared by fleets: one alone has half; one more is answered 503.',
  ),
  consumersPerFleetMax: integer(20, 0, 1_000, 'Named consumers of one fleet.'),
  consumerBatchRecordsMax: integer(1_000, 1, 100_000, 'Records of one batch of a consumer.'),
  consumerBatchBytesMax: integer(
    4_194_304,
    65_536,
    67_108_864,
    'Payload bytes of one batch of a consumer, but for its first record.',
  ),
  consumerFetchesMax: integer(
    256,
    1,
    100_000,
    'Fetches of consumers that wait for records at once, shared by fleets: one alone has half; one more is answered 503.',
  ),
  consumerLeaseSeconds: integer(
    30,
    1,
    3_600,
    'How long a worker has for a batch before it is given again, unless its consumer says otherwise.',
  ),
};

export type ConsumerConfig = ValuesOf<typeof consumerKeys>;
