import type { ConsumerDocument } from '../consumer.ts';
import { destinationAddresses } from '../destination-text.ts';
import type { ForwarderDocument, RefusedRecordDocument } from '../forwarder.ts';
import type { ListColumns } from './column.ts';

export const consumerColumns = [
  { name: 'name', label: 'Name' },
  { name: 'kinds' },
  { name: 'schemas' },
  {
    name: 'reads',
    label: 'Reads',
    value: ({ kinds, schemas }) => [...kinds, ...schemas],
    none: 'all records',
    isPageOnly: true,
    isLesser: true,
  },
  { name: 'enabled', label: 'State', kind: 'word' },
  { name: 'behind', label: 'Behind' },
  { name: 'seconds_behind' },
  { name: 'lost', label: 'Lost', kind: 'count' },
  {
    name: 'batches',
    label: 'Batches out',
    kind: 'count',
    value: ({ shards }) => shards.filter(({ batch }) => batch !== null).length,
    isPageOnly: true,
    isLesser: true,
  },
  { name: 'lease_seconds' },
] as const satisfies ListColumns<ConsumerDocument>;

type ConsumerShard = ConsumerDocument['shards'][number];

/** The place of a consumer in the log of each shard, and who has a batch of it. */
export const consumerShardColumns = [
  { name: 'shard', label: 'Shard', kind: 'count' },
  { name: 'position', label: 'Position', kind: 'count', isLesser: true },
  { name: 'behind', label: 'Behind' },
  { name: 'lost', label: 'Lost', kind: 'count' },
  {
    name: 'batch',
    label: 'Batch',
    value: ({ batch }) => batch && `${batch.records} until ${batch.expires_at}`,
  },
  { name: 'worker', value: ({ batch }) => batch?.worker },
] as const satisfies ListColumns<ConsumerShard>;

function errorText({ last_error }: ForwarderDocument): string | null {
  // An error that is over is in `show` alone.
  return last_error === null || last_error.recovered_at !== null
    ? null
    : `${last_error.at}  ${last_error.msg}`;
}

export const forwarderColumns = [
  { name: 'name', label: 'Name' },
  { name: 'type' },
  { name: 'to', label: 'To', value: destinationAddresses, isLesser: true },
  { name: 'state', label: 'State', kind: 'word' },
  { name: 'behind', label: 'Behind' },
  { name: 'seconds_behind' },
  { name: 'lost', label: 'Lost', kind: 'count', isPageOnly: true, isLesser: true },
  { name: 'dead_letters', label: 'Dead letters', kind: 'count' },
  { name: 'delivered' },
  {
    name: 'last_delivered_at',
    label: 'Delivered',
    kind: 'time',
    none: 'not yet',
    isPageOnly: true,
    isLesser: true,
  },
  { name: 'last_error', value: errorText },
] as const satisfies ListColumns<ForwarderDocument>;

/** Records that the destination of a forwarder refused. */
export const refusedRecordColumns = [
  { name: 'record_id' },
  { name: 'failed_at' },
  { name: 'device_id' },
  { name: 'kind' },
  { name: 'schema' },
  { name: 'replayed' },
  { name: 'reason' },
] as const satisfies ListColumns<RefusedRecordDocument>;
