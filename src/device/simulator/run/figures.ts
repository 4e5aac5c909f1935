import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { type DevicesReport, noCounts, type Route, routes, type SimulatedCounts } from '../devices/orders.ts';
import type { FigureSource } from '../scenario/assertion.ts';

/** Times of one route: from when an answer was due to be asked for, and from when it was. */
class RouteTimes {
  readonly response = createHistogram();
  readonly service = createHistogram();
  /** Times of the last interval. */
  readonly recent = createHistogram();

  record(responseMicroseconds: number, serviceMicroseconds: number): void {
    this.response.record(Math.max(1, Math.round(responseMicroseconds)));
    this.recent.record(Math.max(1, Math.round(responseMicroseconds)));
    this.service.record(Math.max(1, Math.round(serviceMicroseconds)));
  }
}

/** Percentiles in milliseconds. */
export interface Times {
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

export interface RouteFigures {
  route: string;
  answered: number;
  perSecond: number;
  response: Times;
  service: Times;
}

/** Gauges of all processes together. */
export interface Gauges {
  online: number;
  connections: number;
  streams: number;
  waiting: number;
  queued: number;
  residentBytes: number;
  stateBytes: number;
  busy: number;
}

/** Beyond, this machine rather than the server makes the figures. */
const busyMax = 0.85;
const lagMsMax = 50;
const complaintsMax = 20;

/** All that is counted and timed in a run: what processes of devices report, and mail that was sent. */
export class RunFigures implements FigureSource {
  readonly complaints: string[] = [];
  /** Found by the check at the end. */
  findings: Record<string, number> = {};
  readonly #times = new Map<string, RouteTimes>();
  readonly #reports: DevicesReport[] = [];
  #startMs = performance.now();
  #endMs: number | undefined;
  /** The most answers in a second in which this machine was not behind. */
  #bestPerSecond = 0;
  #secondAnswers = 0;
  #secondMs = 0;
  #isSecondHonest = true;

  /** Starts the clock of rates. */
  begin(): void {
    this.#startMs = performance.now();
  }

  /** Takes a report of a process. */
  take(process: number, report: DevicesReport): void {
    this.#reports[process] = report;
    const { samples } = report;
    let lag = 0;
    for (let at = 0; at + 2 < samples.length; at += 3) {
      const route = routes[samples[at] ?? 0] ?? 'lag';
      this.record(route, samples[at + 1] ?? 1, samples[at + 2] ?? 1);
      if (route === 'lag') lag = Math.max(lag, samples[at + 1] ?? 0);
      else this.#secondAnswers += 1;
    }
    if (lag > lagMsMax * 1_000) this.#isSecondHonest = false;
    const room = complaintsMax - this.complaints.length;
    this.complaints.push(...report.complaints.slice(0, Math.max(0, room)));
    this.#closeSecond();
  }

  /** Records an answer by microseconds. */
  record(route: Route | 'mail', response: number, service: number): void {
    let times = this.#times.get(route);
    if (times === undefined) {
      times = new RouteTimes();
      this.#times.set(route, times);
    }
    times.record(response, service);
  }

  /** Stops the clock of rates. */
  end(): void {
    this.#endMs ??= performance.now();
  }

  get seconds(): number {
    return ((this.#endMs ?? performance.now()) - this.#startMs) / 1_000;
  }

  get bestPerSecond(): number {
    return this.#bestPerSecond;
  }

  get counts(): SimulatedCounts {
    return { ...noCounts, ...this.#sum((report) => ({ ...report.counts })) };
  }

  /** True once a process of devices has reported. */
  get isBegun(): boolean {
    return this.#reports.length > 0;
  }

  /** Once it is begun. */
  get gauges(): Gauges {
    const sum = this.#sum(
      ({ online, connections, streams, waiting, queued, residentBytes, stateBytes, busy }) => ({
        online,
        connections,
        streams,
        waiting,
        queued,
        residentBytes,
        stateBytes,
        busy,
      }),
    );
    return { ...sum, busy: sum.busy / Math.max(1, this.#reports.length) };
  }

  /** Figures of all routes with answers, the simulator's own lag last. */
  routes(): RouteFigures[] {
    return [...routes, 'mail'].flatMap((route) => {
      const times = this.#times.get(route);
      if (times === undefined || route === 'lag') return [];
      const answered = times.response.count;
      const perSecond = answered / this.seconds;
      return [
        { route, answered, perSecond, response: timesOf(times.response), service: timesOf(times.service) },
      ];
    });
  }

  /** How far this machine was behind its own plan. */
  get lag(): Times {
    const times = this.#times.get('lag');
    return timesOf(times?.response ?? createHistogram());
  }

  /** Percentiles of the last interval by route, which begins anew. */
  takeRecent(): Map<string, Times & { count: number }> {
    const recent = new Map<string, Times & { count: number }>();
    for (const [route, { recent: histogram }] of this.#times) {
      recent.set(route, { ...timesOf(histogram), count: histogram.count });
      histogram.reset();
    }
    return recent;
  }

  /** Why the figures are this machine's rather than the server's; undefined if they are not. */
  get bottleneck(): string | undefined {
    if (this.gauges.busy > busyMax)
      return `the simulator used ${Math.round(100 * this.gauges.busy)}% of its cores`;
    if (this.lag.p99 > lagMsMax)
      return `the simulator was ${this.lag.p99.toFixed(0)} ms behind its plan (p99)`;
    return undefined;
  }

  figure(name: string): number | undefined {
    const [route = '', ...rest] = name.split('.');
    const counts: Readonly<Record<string, number>> = { ...this.counts, ...this.findings };
    if (rest.length === 0) return Object.hasOwn(counts, route) ? counts[route] : undefined;
    const times = this.#times.get(route);
    // A route that nothing went over has no times, and is no mistake in the name.
    const isKnown = route === 'mail' || routes.some((one) => one === route);
    const [kind, last = ''] = rest.length === 1 ? ['response', rest[0]] : rest;
    if (!isKnown || (kind !== 'response' && kind !== 'service') || rest.length > 2) return undefined;
    const histogram = times?.[kind] ?? createHistogram();
    if (last === 'count') return histogram.count;
    if (last === 'rate') return histogram.count / this.seconds;
    const values = timesOf(histogram);
    return Object.hasOwn(values, last) ? values[last as keyof Times] : undefined;
  }

  names(): readonly string[] {
    const ofRoutes = [...routes, 'mail'].map((route) => `${route}.p99`);
    return [...ofRoutes, ...Object.keys(this.counts), ...Object.keys(this.findings)];
  }

  #sum<T extends { [K in keyof T]: number }>(of: (report: DevicesReport) => T): T {
    const sums = {} as Record<string, number>;
    for (const report of this.#reports.filter((one) => one !== undefined)) {
      for (const [name, value] of Object.entries(of(report))) sums[name] = (sums[name] ?? 0) + Number(value);
    }
    return sums as T;
  }

  #closeSecond(): void {
    const nowMs = performance.now();
    if (nowMs - this.#secondMs < 1_000) return;
    const rate = (this.#secondAnswers * 1_000) / (nowMs - this.#secondMs);
    if (this.#isSecondHonest && this.#secondMs > 0 && this.gauges.busy <= busyMax)
      this.#bestPerSecond = Math.max(this.#bestPerSecond, rate);
    this.#secondMs = nowMs;
    this.#secondAnswers = 0;
    this.#isSecondHonest = true;
  }
}

function timesOf(histogram: RecordableHistogram): Times {
  const at = (percentile: number): number =>
    histogram.count === 0 ? 0 : histogram.percentile(percentile) / 1_000;
  return {
    p50: at(50),
    p90: at(90),
    p99: at(99),
    p999: at(99.9),
    max: histogram.count === 0 ? 0 : histogram.max / 1_000,
  };
}
