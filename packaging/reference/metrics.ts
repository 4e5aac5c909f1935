import { registerMetrics } from '../../src/admin-api/server/metrics-route.ts';
import { describedServer } from './described-server.ts';
import { code, page, table } from './markdown.ts';

/** A metric, of which prom-client's types leave out the most. */
interface Metric {
  name: string;
  type: string;
  help: string;
  labelNames: readonly string[];
}

/** Every metric of the server. */
export function metricsPage(): string {
  const { figures, metrics: others } = describedServer();
  const admission = { counts: { underWay: 0, waiting: 0, refused: 0 } };
  const { registry } = registerMetrics(figures, admission, others);
  const metrics = registry.getMetricsAsArray() as unknown as Metric[];
  const row = ({ name, type, help, labelNames }: Metric): string[] => [
    code(name),
    type,
    labelNames.map(code).join(', '),
    help,
  ];
  return page('Metrics', 'whoever watches a server with Prometheus: every metric of `/metrics`.', [
    '`fleetpost dashboard` prints a dashboard of them for Grafana. Counters begin at 0 with each start. Beside these there',
    'are those of the process, `process_*` and `nodejs_*`, which begin with the first scrape.',
    '',
    ...table(['Metric', 'Type', 'Labels', 'What it is'], metrics.map(row)),
  ]);
}
