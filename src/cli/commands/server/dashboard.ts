import type { Command } from 'commander';
import { dashboard } from './grafana-dashboard.ts';

/** `dashboard`: needs no server. */
export function addDashboardCommand(program: Command): void {
  program
    .command('dashboard')
    .description('print a Grafana dashboard for the metrics of /metrics, to be imported')
    .action(() => {
      process.stdout.write(`${JSON.stringify(dashboard(), undefined, 2)}\n`);
    });
}
