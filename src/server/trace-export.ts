import type { MetricSet } from '../admin-api/request/metric-set.ts';
import { SingleFlight } from '../core/async.ts';
import type { Log } from '../core/telemetry/log.ts';
import { type Span, SpanBuffer, type TakenSpans } from '../core/telemetry/trace.ts';
import type { WorkerPool } from '../threads/worker-pool.ts';
import type { RunningConfig } from './configuration/config.ts';

const intervalMs = 1_000;
const timeoutMs = 5_000;

export interface TraceExportOptions {
  url: string;
  /** Takes the workers' spans since the last call. */
  take(): Promise<TakenSpans>;
  log: Log;
}

/** Adds metrics of the export of spans, unless it is off. */
export function addTraceMetrics(
  set: MetricSet,
  { traces }: { traces: Pick<TraceExport, 'exported' | 'dropped'> | undefined },
): void {
  if (traces === undefined) return;
  set.counter('fleetpost_spans_exported_total', 'Spans accepted by traceUrl.', () => traces.exported);
  set.counter(
    'fleetpost_spans_dropped_total',
    'Spans dropped: too many, or not accepted.',
    () => traces.dropped,
  );
}

/**
 * Sends spans to a collector once a second, as OTLP JSON. Spans it does not accept are dropped and counted: traces are
 * not worth memory of a server whose collector is down.
 */
export class TraceExport {
  /** Spans of the main thread. */
  readonly spans = new SpanBuffer();
  exported = 0;
  dropped = 0;
  readonly #options: TraceExportOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #sending = new SingleFlight(() => this.#send());
  #isFailing = false;

  constructor(options: TraceExportOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#sending.run(), intervalMs).unref();
  }

  /** Sends the remaining spans; to be called before the workers stop. */
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
      this.#isFailing = false;
    } catch (error) {
      this.dropped += spans.length;
      if (!this.#isFailing)
        log.warn({ reason: (error as Error).message }, 'span export to traceUrl failed; dropping spans');
      this.#isFailing = true;
    }
  }
}

/** Creates the export of all threads' spans; undefined if tracing is off. */
export function traceExport(
  { traceUrl }: Pick<RunningConfig, 'traceUrl'>,
  cluster: Pick<WorkerPool, 'takeSpans'>,
  log: Log,
): TraceExport | undefined {
  return traceUrl === ''
    ? undefined
    : new TraceExport({ url: traceUrl, take: () => cluster.takeSpans(), log });
}

/** Formats an ExportTraceServiceRequest in the JSON encoding of OTLP 1. */
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
