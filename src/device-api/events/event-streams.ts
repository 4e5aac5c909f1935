import type { Settings } from '../../core/config/settings.ts';
import { unavailable } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import { EventStream } from './event-stream.ts';
import { MailWait } from './mail-wait.ts';

export interface StreamLimits {
  streamKeepAliveSeconds: number;
  settings: Settings<{ streamsPerWorkerMax: number }>;
}

/** Tracks the open streams of one front end, and the requests that wait for mail, and keeps streams alive. */
export class EventStreams {
  readonly #limits: StreamLimits;
  readonly #metrics: WorkerMetrics;
  /** One slot for each second of the interval; a stream is kept alive in the one it was opened in (D20). */
  readonly #slots: Set<EventStream>[];
  readonly #timer: NodeJS.Timeout;
  #slot = 0;
  readonly #waits = new Set<MailWait>();
  #count = 0;
  #isOver = false;

  constructor(limits: StreamLimits, metrics: WorkerMetrics) {
    this.#limits = limits;
    this.#metrics = metrics;
    this.#slots = Array.from({ length: limits.streamKeepAliveSeconds }, () => new Set());
    this.#timer = setInterval(() => this.#keepAlive(), 1_000);
  }

  /** Calls `leave` once, when the stream has ended. @throws ApiError unavailable at streamsPerWorkerMax. */
  create(device: DeviceKey, leave: () => void, check: () => Promise<void>): EventStream {
    const slot = this.#slots[this.#slot];
    const onClose = this.#enter(() => {
      slot?.delete(stream);
      leave();
    });
    const stream = new EventStream(device, onClose, check);
    slot?.add(stream);
    return stream;
  }

  /** Likewise for a request that waits so long for mail, after `endAll` not at all. */
  wait(seconds: number, leave: () => void, check: () => Promise<void>): MailWait {
    const onClose = this.#enter(() => {
      this.#waits.delete(wait);
      leave();
    });
    const wait = new MailWait(seconds, onClose, check);
    this.#waits.add(wait);
    if (this.#isOver) wait.end();
    return wait;
  }

  /** Counts one more, until the function that it returns is called. */
  #enter(leave: () => void): () => void {
    if (this.#count >= this.#limits.settings.current.streamsPerWorkerMax) {
      throw unavailable('Too many open event streams (streamsPerWorkerMax). Retry later.', 30);
    }
    this.#count += 1;
    this.#metrics.streamOpened();
    return () => {
      this.#count -= 1;
      this.#metrics.streamClosed();
      leave();
    };
  }

  endAll(): void {
    clearInterval(this.#timer);
    this.#isOver = true;
    for (const wait of this.#waits) wait.end();
    for (const slot of this.#slots) {
      for (const stream of slot) stream.end();
    }
  }

  #keepAlive(): void {
    this.#slot = (this.#slot + 1) % this.#slots.length;
    const timeMs = Date.now();
    for (const stream of this.#slots[this.#slot] ?? []) stream.keepAlive(timeMs);
  }
}
