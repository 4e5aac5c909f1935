/** Measurements; the last word of each name is its unit, the p's are percentiles of latency. */
export interface Figures {
  operationsPerSecond?: number;
  /** User and system time of all processes and threads of the server, divided by the requests answered. */
  cpuMicrosecondsPerOperation?: number;
  /** Shares of these that the workers, the main thread, those that run actions, and all others needed. */
  workersMicrosecondsPerOperation?: number;
  mainThreadMicrosecondsPerOperation?: number;
  actionThreadsMicrosecondsPerOperation?: number;
  otherThreadsMicrosecondsPerOperation?: number;
  /** Shares of these that the nodes and the processes of the database needed. */
  nodesMicrosecondsPerOperation?: number;
  databaseMicrosecondsPerOperation?: number;
  /** Unit for operations too short for microseconds. */
  nanosecondsPerOperation?: number;
  p50Milliseconds?: number;
  p99Milliseconds?: number;
  p999Milliseconds?: number;
  /** Growth of the server's resident memory. */
  bytesPerStream?: number;
  bytesPerRecord?: number;
  memoryBytesPerDevice?: number;
  /** Bytes of TLS in both directions. */
  wireBytesPerOperation?: number;
  /** CPU time of a tab of the console: of its main thread, its process, and of that its JavaScript. */
  tabCpuMilliseconds?: number;
  residentMegabytes?: number;
  heapMegabytes?: number;
  /** Share of the connections that offered a TLS session. */
  resumedPercent?: number;
  /** Time from the start of the process to its first answer. */
  startMilliseconds?: number;
}

/** The conditions that it was measured under; each absent where it plays no part. */
export interface Conditions {
  shards?: number;
  nodes?: number;
  connections?: number;
  /** Who ask at the same time, each again when it is answered. */
  callers?: number;
  devices?: number;
  queuedMails?: number;
  /** In the log. */
  records?: number;
  streams?: number;
  actionThreads?: number;
  payloadBytes?: number;
  /** Durability that an answer promises: 'fsync before 201', 'appendfsync always', 'none'. */
  durability?: string;
  /** Closed: the next request waits for the last answer. Open: requests arrive at a constant rate. */
  loop?: 'closed' | 'open';
  ratePerSecond?: number;
  batch?: number;
}

/** One figure of the report: medians over its rounds. */
export interface Result {
  /** The benchmark it belongs to, as `npm run bench -- NAME` takes it. */
  benchmark: string;
  /** One line in the benchmark's table: 'heartbeat', 'datapoint with key'. */
  workload: string;
  /** Who was measured: 'fleetpost', 'nginx'. */
  subject: string;
  conditions: Conditions;
  rounds: number;
  figures: Figures;
  /** The median of the ratios of one figure in each round, side by side. */
  ratio?: { to: string; figure: keyof Figures; value: number };
}

/** Something that could not be measured here, and what would help. */
export interface Skipped {
  benchmark: string;
  subject: string;
  reason: string;
}

/** Record of a run: the raw JSON, and what text and CSV are made of. */
export interface Report {
  /** ISO 8601. */
  startedAt: string;
  /** Machine it ran on, as the text prints it: 'CPU', 'Memory', 'Node', a library's name. */
  machine: Readonly<Record<string, string>>;
  benchmarks: readonly { name: string; about: string }[];
  results: readonly Result[];
  skipped: readonly Skipped[];
}
