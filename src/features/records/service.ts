import type { DeviceKey } from '../../core/identity.ts';
import type { RecordKind } from '../../domain/records/record.ts';

/** Which records of a fleet, and from where on. */
export interface RecordsQuery {
  fleetId: string;
  /** Of one of these, where they are given. */
  kinds?: readonly RecordKind[];
  schemas?: readonly string[];
  devices?: readonly DeviceKey[];
  /** Stored then or later, and before. */
  fromMs?: number;
  toMs?: number;
  /** The cursor of the last record seen; `latest` for the end of the logs as they are. */
  after?: string;
  /** Records at most. */
  limit?: number;
  /** Goes on with what is stored later. */
  follow: boolean;
  /** Says between the records how far it has come. */
  progress: boolean;
}

/** What the admin API asks of the logs. */
export interface RecordService {
  /**
   * Lines of JSON, some at a time, for as long as they are taken and the signal says nothing.
   * @throws ApiError bad_request for a cursor that is none, unavailable when there are too many.
   */
  read(query: RecordsQuery, signal: AbortSignal): Promise<AsyncIterable<Buffer>>;
}
