import { lengthText } from '../scenario/quantity.ts';
import type { Scenario } from '../scenario/scenario.ts';
import type { RouteFigures, Times } from './figures.ts';
import type { SimulationResult } from './simulation.ts';

/** Tells whether a run passed: no answer broken, no assertion missed. */
export function isPassed({ check, assertions }: SimulationResult): boolean {
  return check.findings.isClean && assertions.every(({ holds }) => holds);
}

/** A result as a document. */
export function reportDocument(scenario: Scenario, result: SimulationResult): object {
  const { figures, check, fleetId, assertions, unfinished } = result;
  return {
    passed: isPassed(result),
    fleet_id: fleetId,
    devices: scenario.devices,
    seed: scenario.seed,
    seconds: figures.seconds,
    routes: figures.routes().map(documentOf),
    lag_milliseconds: figures.lag,
    bottleneck: figures.bottleneck ?? null,
    counts: figures.counts,
    kills: result.kills,
    mails: { queued: result.mailsQueued, refused: result.mailsRefused },
    unfinished,
    check: {
      ...check.findings.counts,
      records: check.records,
      mail_changes: check.mailChanges,
      mailboxes: check.mailboxes,
      shown: check.findings.shown,
    },
    memory: memoryOf(scenario, result),
    best_requests_per_second: figures.bestPerSecond,
    assertions,
    complaints: figures.complaints,
  };
}

function documentOf({ route, answered, perSecond, response, service }: RouteFigures): object {
  return {
    route,
    answered,
    per_second: perSecond,
    response_milliseconds: response,
    service_milliseconds: service,
  };
}

function memoryOf({ devices }: Scenario, { figures, processes }: SimulationResult): Record<string, number> {
  const { residentBytes, stateBytes } = figures.gauges;
  return {
    processes,
    resident_bytes: residentBytes,
    state_bytes: stateBytes,
    state_bytes_per_device: stateBytes / devices,
  };
}

/** A result in lines. */
export function reportText(scenario: Scenario, result: SimulationResult): string {
  const { figures, check, fleetId, kills } = result;
  const { counts, findings } = { counts: figures.counts, findings: check.findings };
  const seconds = figures.seconds;
  const memory = memoryOf(scenario, result);
  const lines = [
    `${scenario.devices} devices for ${lengthText(Math.round(seconds) * 1_000)}, seed ${scenario.seed}, fleet ${fleetId}`,
    '',
    ...routeLines(figures.routes()),
    '',
    `Errors ${counts.errors}, without an answer ${counts.failures}, cut off on purpose ${counts.cut}, told to come later ${counts.refused}, retries ${counts.retries}.`,
    `Mail: ${result.mailsQueued} sent, ${result.mailsRefused} refused, ${counts.mails} settled, ${counts.crashes} crashes in between; kills of a server: ${kills}.`,
    `Late ${counts.late}, dropped ${counts.dropped}, skipped while offline ${counts.skipped}, never answered ${result.unfinished}, spoilt and refused ${counts.faulty}.`,
    `The simulator itself was behind by p50 ${ms(figures.lag.p50)}, p99 ${ms(figures.lag.p99)}, at most ${ms(figures.lag.max)}.`,
    `Memory: ${Math.round(memory.state_bytes_per_device ?? 0)} bytes a device, ${mebibytes(memory.resident_bytes ?? 0)} in ${result.processes} processes.`,
    `Most answers in a second in which it was not behind: ${Math.round(figures.bestPerSecond)}.`,
  ];
  if (figures.bottleneck !== undefined)
    lines.push(
      `The machine is the bottleneck, not the server: ${figures.bottleneck}. Simulate fewer devices, or slower ones.`,
    );
  for (const complaint of figures.complaints) lines.push(`Unexpected: ${complaint}`);
  lines.push(
    '',
    `${findings.lost} lost, ${findings.doubled} doubled, ${findings.out_of_order} out of order${findings.unknown > 0 ? `, ${findings.unknown} that nobody sent` : ''}: ` +
      `${check.records} records, ${check.mailChanges} changes of mail and ${check.mailboxes} mailboxes against what was answered.`,
    ...findings.shown.map((text) => `  ${text}`),
  );
  for (const { text, value, holds } of result.assertions) {
    lines.push(`${holds ? 'holds' : 'FAILS'}: ${text} (${Number(value.toFixed(3))})`);
  }
  return lines.join('\n');
}

const columns: readonly [string, (one: RouteFigures) => string][] = [
  ['answered', ({ answered }) => String(answered)],
  ['a second', ({ perSecond }) => perSecond.toFixed(1)],
  ['response p50', ({ response }) => ms(response.p50)],
  ['p99', ({ response }) => ms(response.p99)],
  ['p99.9', ({ response }) => ms(response.p999)],
  ['max', ({ response }) => ms(response.max)],
  ['service p50', ({ service }) => ms(service.p50)],
  ['p99', ({ service }) => ms(service.p99)],
];

/** A line a route: response is from when a request was due, service from when it was sent. */
export function routeLines(routes: readonly RouteFigures[]): string[] {
  const rows = [
    ['Route', ...columns.map(([title]) => title)],
    ...routes.map((one) => [one.route, ...columns.map(([, of]) => of(one))]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  '),
  );
}

/** Formats milliseconds with three digits. */
export function ms(value: Times['p50']): string {
  return `${value >= 100 ? Math.round(value) : Number(value.toPrecision(3))} ms`;
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}
