import { SingleFlight } from '../core/async.ts';
import type { Log } from '../core/telemetry/log.ts';
import { type Span, SpanBuffer, type TakenSpans } from '../core/telemetry/trace.ts';
import type { WorkerPool } from '../threads/worker-pool.ts';
import type { Config } from './configuration/config.ts';

const intervalMs = 1_000;
const timeoutMs = 5_000;

export interface TraceExportOptions {
  url: string;
  /** The spans of the workers since they were asked last. */
  take(): Promise<TakenSpans>;
  log: Log;
}

/**
 * Sends spans to a collector once a second, in OTLP's JSON. What it does not take is dropped and counted: a
 * trace is worth no memory of a server that a collector has left alone.
 */
export class TraceExport {
  /** Of the main thread itself. */
  readonly spans = new SpanBuffer();
  exported = 0;
  dropped = 0;
  readonly #options: TraceExportOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #sending = new SingleFlight(() => this.#send());
  #fails = false;

  constructor(options: TraceExportOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#sending.run(), intervalMs).unref();
  }

  /** Sends what is left while the workers are there. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sending.settled();
    await this.#send();
  }

  async #send(): Promise<void> {
    const { url, take, log } = this.#options;
    const ofWorkers = await take();
    const own = this.spans.take();
    const spans = [...ofWorkers.spans, ...own.spans];
    this.dropped += ofWorkers.dropped + own.dropped;
    if (spans.length === 0) return;
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(otlp(spans)),
        signal: AbortSignal.timeout(timeoutMs),
      });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`status ${response.status}`);
      this.exported += spans.length;
      this.#fails = false;
    } catch (error) {
      this.dropped += spans.length;
      if (!this.#fails)
        log.warn({ reason: (error as Error).message }, 'spans are dropped: traceUrl does not take them');
      this.#fails = true;
    }
  }
}

/** Of a server's threads; undefined where nothing is traced. */
export function traceExport(
  { traceUrl }: Pick<Config, 'traceUrl'>,
  cluster: Pick<WorkerPool, 'takeSpans'>,
  log: Log,
): TraceExport | undefined {
  return traceUrl === ''
    ? undefined
    : new TraceExport({ url: traceUrl, take: () => cluster.takeSpans(), log });
}

/** ExportTraceServiceRequest, in the JSON encoding of OTLP 1. */
function otlp(spans: readonly Span[]): object {
  const attributesOf = (attributes: Record<string, string | number>): object[] =>
    Object.entries(attributes).map(([key, value]) => ({
      key,
      value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
    }));
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': 'fleetpost' }) },
        scopeSpans: [
          {
            scope: { name: 'fleetpost' },
            spans: spans.map(({ isServer, startMs, endMs, isError, attributes, ...ids }) => ({
              ...ids,
              kind: isServer ? 2 : 1,
              startTimeUnixNano: `${startMs}000000`,
              endTimeUnixNano: `${endMs}000000`,
              attributes: attributesOf(attributes),
              status: isError ? { code: 2 } : {},
            })),
          },
        ],
      },
    ],
  };
}
