import type { Settings } from '../../core/config/settings.ts';
import { unavailable } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import { EventStream } from './event-stream.ts';

export interface StreamLimits {
  streamKeepAliveSeconds: number;
  settings: Settings<{ streamsPerWorkerMax: number }>;
}

/** Tracks the open streams of one front end and keeps them alive. */
export class EventStreams {
  readonly #limits: StreamLimits;
  readonly #metrics: WorkerMetrics;
  /** One slot for each second of the interval; a stream is kept alive in the one it was opened in (D20). */
  readonly #slots: Set<EventStream>[];
  readonly #timer: NodeJS.Timeout;
  #slot = 0;
  #count = 0;

  constructor(limits: StreamLimits, metrics: WorkerMetrics) {
    this.#limits = limits;
    this.#metrics = metrics;
    this.#slots = Array.from({ length: limits.streamKeepAliveSeconds }, () => new Set());
    this.#timer = setInterval(() => this.#keepAlive(), 1_000);
  }

  /** Calls `leave` once, when the stream has ended. @throws ApiError unavailable at streamsPerWorkerMax. */
  create(device: DeviceKey, leave: () => void, check: () => Promise<void>): EventStream {
    if (this.#count >= this.#limits.settings.current.streamsPerWorkerMax) {
      throw unavailable('Too many open event streams (streamsPerWorkerMax). Retry later.', 30);
    }
    const slot = this.#slots[this.#slot];
    const onClose = (): void => {
      slot?.delete(stream);
      this.#count -= 1;
      this.#metrics.streamClosed();
      leave();
    };
    const stream = new EventStream(device, onClose, check);
    slot?.add(stream);
    this.#count += 1;
    this.#metrics.streamOpened();
    return stream;
  }

  endAll(): void {
    clearInterval(this.#timer);
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
