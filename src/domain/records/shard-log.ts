import type { Awaitable } from '../../core/async.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { DevicePage, DeviceSpan, Ingest, IngestOutcome, LogPage } from './record.ts';

/** The records of a shard's devices, in the order they were stored. */
export interface ShardLog {
  /**
   * Reads in order of storage, starting at the position, or at the front if retention has trimmed past it. Positions
   * only grow, with gaps where retention removed records. No record ever appears before one already read.
   */
  read(from: number): Awaitable<LogPage>;
  /**
   * The last records before a position, at most one commit's, in order of storage. `next` is where to go on: the
   * position to read before; the requested one if nothing is stored before it.
   */
  readBefore(before: number): Awaitable<LogPage>;
  /**
   * Reads the records of one device by an index, whatever others have stored between them. A page takes some
   * milliseconds at most.
   */
  ofDevice(device: DeviceKey, span: DeviceSpan): Awaitable<DevicePage>;
  /** The position of the next record to be appended. */
  end(): Awaitable<number>;
  /**
   * The position from which on records were stored at that time or later, by the wall clock: some seconds early if
   * the clock was corrected.
   */
  positionAt(timeMs: number): Awaitable<number>;
  /** When the record at a position was stored; undefined if there is none from there on. */
  timeAt(position: number): Awaitable<number | undefined>;
  /**
   * The position from which on records are ordered by time; before it there may be records of shards that were removed.
   */
  reorderedUntil(): Awaitable<number>;

  /**
   * Copies the payload before returning. Does not check that the device exists. A remembered key is answered whatever
   * its time; a forgotten one is too old, even if the window is raised later.
   */
  append(ingest: Ingest): Promise<IngestOutcome>;
}
