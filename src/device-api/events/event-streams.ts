import { unavailable } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { WorkerMetrics } from '../../core/telemetry/worker-metrics.ts';
import { EventStream } from './event-stream.ts';

export interface StreamLimits {
  streamKeepAliveSeconds: number;
  streamsPerWorkerMax: number;
}

/** The open streams of one front end, and their keep-alive. */
export class EventStreams {
  readonly #limits: StreamLimits;
  readonly #metrics: WorkerMetrics;
  /** One set for each second of the interval: a stream has its turn in the second it was opened in (D20). */
  readonly #turns: Set<EventStream>[];
  readonly #timer: NodeJS.Timeout;
  #turn = 0;
  #count = 0;

  constructor(limits: StreamLimits, metrics: WorkerMetrics) {
    this.#limits = limits;
    this.#metrics = metrics;
    this.#turns = Array.from({ length: limits.streamKeepAliveSeconds }, () => new Set());
    this.#timer = setInterval(() => this.#keepAlive(), 1_000);
  }

  /** `leave` is called once, when the stream is over. @throws ApiError unavailable at streamsPerWorkerMax. */
  create(device: DeviceKey, leave: () => void, check: () => Promise<void>): EventStream {
    if (this.#count >= this.#limits.streamsPerWorkerMax) {
      throw unavailable('This server has all the event streams it may have (streamsPerWorkerMax).', 30);
    }
    const turn = this.#turns[this.#turn];
    const onClose = (): void => {
      turn?.delete(stream);
      this.#count -= 1;
      this.#metrics.streamClosed();
      leave();
    };
    const stream = new EventStream(device, onClose, check);
    turn?.add(stream);
    this.#count += 1;
    this.#metrics.streamOpened();
    return stream;
  }

  endAll(): void {
    clearInterval(this.#timer);
    for (const turn of this.#turns) {
      for (const stream of turn) stream.end();
    }
  }

  #keepAlive(): void {
    this.#turn = (this.#turn + 1) % this.#turns.length;
    const timeMs = Date.now();
    for (const stream of this.#turns[this.#turn] ?? []) stream.keepAlive(timeMs);
  }
}
