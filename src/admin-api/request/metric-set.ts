import { Counter, Gauge, type Metric, Registry } from 'prom-client';

/** Counts by bucket, not cumulative, the last for values beyond all bounds; and the sum of all values. */
type Buckets = { counts: number[]; sum: number };

/** A histogram whose counts are read from elsewhere: prom-client's own can only observe one value at a time. */
class SharedHistogram {
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly #bounds: readonly number[];
  readonly #label: string;
  readonly #read: () => Buckets[];

  constructor(name: string, help: string, bounds: readonly number[], label: string, read: () => Buckets[]) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
    this.labelNames = [label];
    this.#label = label;
    this.#read = read;
  }

  /** Called by prom-client on each scrape. */
  get() {
    const { name, help, type, aggregator } = this;
    return {
      name,
      help,
      type,
      aggregator,
      values: this.#read().flatMap((buckets, index) => this.#values(buckets, index)),
    };
  }

  #values({ counts, sum }: Buckets, index: number) {
    const labels = { [this.#label]: index };
    let count = 0;
    const buckets = counts.map((inBucket, bucket) => {
      count += inBucket;
      return {
        metricName: `${this.name}_bucket`,
        labels: { ...labels, le: this.#bounds[bucket] ?? '+Inf' },
        value: count,
      };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ];
  }
}

type Values = Iterable<readonly [label: string | number, value: number]>;

/** Metrics that are read from elsewhere at each scrape: one value, or one for each value of a label. */
export class MetricSet {
  readonly registry = new Registry();
  readonly #collectors: (() => Promise<void>)[] = [];

  /** Has figures that take turns of the event loop read before each scrape, after those of earlier calls. */
  beforeScrape(read: () => Promise<void>): void {
    this.#collectors.push(read);
  }

  async collect(): Promise<void> {
    for (const read of this.#collectors) await read();
  }

  gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
      },
    });
  }

  gauges(name: string, help: string, label: string, read: () => Values): void {
    new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.registry],
      collect() {
        // A value that is not read any more is over.
        this.reset();
        for (const [value, level] of read()) this.set({ [label]: value }, level);
      },
    });
  }

  counter(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  counters(name: string, help: string, label: string, read: () => Values): void {
    new Counter({
      name,
      help,
      labelNames: [label],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const [value, count] of read()) this.inc({ [label]: value }, count);
      },
    });
  }

  /** `read` returns one histogram for each value of the label, which is its index. */
  histograms(
    name: string,
    help: string,
    bounds: readonly number[],
    label: string,
    read: () => Buckets[],
  ): void {
    const histogram = new SharedHistogram(name, help, bounds, label, read);
    this.registry.registerMetric(histogram as unknown as Metric);
  }
}
