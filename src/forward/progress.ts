/** How one forwarder is doing, since the server started. */
export class Progress {
  readonly counts = { delivered: 0, failed: 0, dead: 0 };
  lastError: { atMs: number; msg: string } | undefined;
  lastDeliveredAtMs: number | undefined;
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

  dead(msg: string): void {
    this.counts.dead += 1;
    this.lastError = { atMs: Date.now(), msg };
  }
}
