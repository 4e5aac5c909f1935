import type { DeviceKey } from '../../core/identity.ts';
import type { RecordKind, StoredRecord } from '../../domain/records/record.ts';
import type { LatestRecords } from './latest-records.ts';

/** Selects records of a fleet, and where to start. */
export interface RecordsQuery {
  fleetId: string;
  /** Absent: all. */
  kinds?: readonly RecordKind[];
  schemas?: readonly string[];
  devices?: readonly DeviceKey[];
  /** Stored in [fromMs, toMs). */
  fromMs?: number;
  toMs?: number;
  /** Cursor of the last record seen; `latest` for the current end of the logs. */
  after?: string;
  /** Maximum number of records. */
  limit?: number;
  /** Keeps the stream open for new records. */
  follow: boolean;
  /** Skips records beyond so many a second, and tells how many in a line. */
  perSecondMax?: number;
  /** Adds lines with its progress. */
  progress: boolean;
}

/** Selects the newest records of a fleet. */
export interface LatestQuery extends Pick<RecordsQuery, 'fleetId' | 'kinds' | 'schemas' | 'devices'> {
  limit: number;
  /** Only the newest of each schema. */
  isPerSchema: boolean;
}

/** Reads logs for the admin API. */
export interface RecordService {
  /**
   * Yields chunks of NDJSON lines until the consumer stops or the signal aborts.
   * @throws ApiError bad_request for an invalid cursor, unavailable for too many open streams.
   */
  read(query: RecordsQuery, signal: AbortSignal): Promise<AsyncIterable<Buffer>>;
  /** The record of a device with this id, at a position of its log; undefined once retention removed it. */
  find(device: DeviceKey, id: Uint8Array, position: number): Promise<StoredRecord | undefined>;
  /** The newest records, newest first, as far back as a bound of bytes. */
  latest(query: LatestQuery): Promise<LatestRecords>;
}
