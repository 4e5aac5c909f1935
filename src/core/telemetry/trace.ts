import { randomBytes } from 'node:crypto';

/** One timed operation of a request, as OpenTelemetry defines it. */
export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  isServer: boolean;
  startMs: number;
  endMs: number;
  isError: boolean;
  attributes: Record<string, string | number>;
}

/** W3C Trace Context, level 1: version, trace, parent, flags. Later versions may append more. */
const traceparentPattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-|$)/;
const sampledFlag = 1;

/** Spans buffered for export; further ones are dropped and counted. */
const spansMax = 2_048;

/** A request that its sender has sampled. */
export class RequestTrace {
  readonly #spans: SpanBuffer;
  readonly #traceId: string;
  readonly #parentSpanId: string;
  readonly #spanId = randomBytes(8).toString('hex');
  readonly #startMs: number;
  #writeStartMs: number | undefined;
  readonly attributes: Record<string, string | number> = {};

  constructor(spans: SpanBuffer, traceId: string, parentSpanId: string, startMs: number) {
    this.#startMs = startMs;
    this.#spans = spans;
    this.#traceId = traceId;
    this.#parentSpanId = parentSpanId;
  }

  /** Starts the span of the shard's queue and commit. */
  waits(): void {
    this.#writeStartMs = Date.now();
  }

  end(route: string, status: number): void {
    const endMs = Date.now();
    const [method = ''] = route.split(' ', 1);
    const traceId = this.#traceId;
    const isError = status >= 500;
    if (this.#writeStartMs !== undefined) {
      this.#spans.add({
        traceId,
        spanId: randomBytes(8).toString('hex'),
        parentSpanId: this.#spanId,
        name: 'shard write',
        isServer: false,
        startMs: this.#writeStartMs,
        endMs,
        isError,
        attributes: {},
      });
    }
    this.#spans.add({
      traceId,
      spanId: this.#spanId,
      parentSpanId: this.#parentSpanId,
      name: route,
      isServer: true,
      startMs: this.#startMs,
      endMs,
      isError,
      attributes: {
        'http.request.method': method,
        'http.route': route.slice(method.length + 1),
        'http.response.status_code': status,
        ...this.attributes,
      },
    });
  }
}

/** Buffers the spans of one thread until export. */
export class SpanBuffer {
  #spans: Span[] = [];
  #dropped = 0;

  /**
   * Begins a trace; call it only after authentication, since strangers must not fill the buffer. Undefined if the
   * request is not sampled or has no valid traceparent.
   */
  begin(traceparent: string, millisecondsAgo: number): RequestTrace | undefined {
    const [, traceId = '', parentSpanId = '', flags = ''] = traceparentPattern.exec(traceparent) ?? [];
    if ((Number.parseInt(flags, 16) & sampledFlag) === 0) return undefined;
    return new RequestTrace(this, traceId, parentSpanId, Math.round(Date.now() - millisecondsAgo));
  }

  add(span: Span): void {
    if (this.#spans.length < spansMax) this.#spans.push(span);
    else this.#dropped += 1;
  }

  take(): TakenSpans {
    const taken = { spans: this.#spans, dropped: this.#dropped };
    this.#spans = [];
    this.#dropped = 0;
    return taken;
  }
}

export interface TakenSpans {
  spans: Span[];
  dropped: number;
}
