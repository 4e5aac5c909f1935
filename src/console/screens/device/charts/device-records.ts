import { useMemo } from 'preact/hooks';
import { type FollowedRecords, useFollowedRecords } from '../../../server/followed-records.ts';
import { newestRecords, type StreamedRecord } from '../../../server/record-stream.ts';
import { type Resource, useResource } from '../../../server/resource.ts';

/** What a device has sent and what became of its mail. */
export interface DeviceRecords {
  /** Newest first. */
  records: readonly StreamedRecord[];
  /** The newest datapoint of each schema, newest first; undefined until it is known. */
  latest: readonly StreamedRecord[] | undefined;
  stream: FollowedRecords;
  /** The records from before the stream was opened. */
  before: Resource<{ records: StreamedRecord[]; isPartial: boolean }>;
}

/** Schemas of which the newest datapoint is shown. */
const schemasMax = 20;

/**
 * The newest records of a device, then those that come. The stream is opened first, at the end of the log, so that
 * nothing is stored between both.
 */
export function useDeviceRecords(fleetId: string, deviceId: string, limit: number): DeviceRecords {
  const query = { device: deviceId, after: 'latest', follow: true };
  const stream = useFollowedRecords(fleetId, deviceId, query, false);
  const isTried = stream.openings > 0 || stream.error !== undefined;
  const key = isTried ? `${fleetId} ${deviceId} ${stream.openings}` : undefined;
  const before = useResource(key && `${key} newest ${limit}`, (signal) =>
    newestRecords(fleetId, { device: deviceId, limit }, signal),
  );
  const bySchema = useResource(key && `${key} latest`, (signal) =>
    newestRecords(
      fleetId,
      { device: deviceId, kind: 'datapoint', per_schema: true, limit: schemasMax },
      signal,
    ),
  );
  const records = useMemo(
    () => without(stream.records, before.value?.records ?? []),
    [stream.records, before.value],
  );
  const latest = useMemo(
    () => bySchema.value && newestOfEach([...stream.records, ...bySchema.value.records]),
    [stream.records, bySchema.value],
  );
  return { records, latest, stream, before };
}

/** Both lists, newest first, without the records that are in the first as well. */
function without(
  newer: readonly StreamedRecord[],
  older: readonly StreamedRecord[],
): readonly StreamedRecord[] {
  const ids = new Set(newer.map(({ record_id }) => record_id));
  return [...newer, ...older.filter(({ record_id }) => !ids.has(record_id))];
}

function newestOfEach(records: readonly StreamedRecord[]): StreamedRecord[] {
  const found = new Map<string, StreamedRecord>();
  for (const record of records) {
    if (record.kind === 'datapoint' && !found.has(record.schema)) found.set(record.schema, record);
  }
  return [...found.values()];
}
