import type { StoredRecord } from '../../../domain/records/record.ts';

/** How one forwarder is doing, since the server started. */
export class ForwarderStats {
  readonly counts = { delivered: 0, failed: 0, dead: 0, dropped: 0 };
  lastError: { atMs: number; msg: string } | undefined;
  lastDeliveredAtMs: number | undefined;
  /** Some of what was taken last, by device, to see whether the destination takes anything. */
  readonly taken = new Map<string, StoredRecord>();
  /** Lanes that wait to try again. */
  backingOff = 0;
  /** Lanes that wait for room among the dead letters. */
  held = 0;

  delivered(records: number): void {
    this.counts.delivered += records;
    this.lastDeliveredAtMs = Date.now();
  }

  /** An attempt that is made again. */
  failed(records: number, msg: string): void {
    this.counts.failed += records;
    this.lastError = { atMs: Date.now(), msg };
  }

  /** One that will not be sent again; kept among the dead letters or not. */
  dead(msg: string, isKept: boolean): void {
    this.counts[isKept ? 'dead' : 'dropped'] += 1;
    this.lastError = { atMs: Date.now(), msg };
  }
}
