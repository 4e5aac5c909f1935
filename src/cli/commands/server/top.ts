import type { Command } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import type { TopDocument } from '../../../contract/server.ts';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import { quantileBucket } from '../../../core/telemetry/quantile-bucket.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, integerOption } from '../../options.ts';
import { print, table } from '../../output.ts';
import { FullScreen, type ScreenSize } from './full-screen.ts';

/** Rates between two samples. */
interface TopRates extends Omit<TopDocument, 'requests' | 'latency' | 'shards' | 'cpu_seconds'> {
  /** Cores in use: 1.5 is one and a half. */
  cpu_cores: number;
  requests: { route: string; per_second: number; failed_per_second: number }[];
  /** Upper bounds of the quantiles' buckets; null if nothing was answered, or beyond all bounds. */
  latency: { p50_seconds: number | null; p99_seconds: number | null };
  shards: (Omit<TopDocument['shards'][number], 'commits' | 'writes' | 'refused'> & {
    commits_per_second: number;
    writes_per_second: number;
    refused_per_second: number;
  })[];
}

function ratesOf(before: TopDocument, after: TopDocument): TopRates {
  const seconds = Math.max(0.001, (Date.parse(after.time) - Date.parse(before.time)) / 1_000);
  // A restarted server counts from 0.
  const rate = (now: number, then = 0): number =>
    Math.round((Math.max(0, now >= then ? now - then : now) / seconds) * 10) / 10;
  const routes = new Map(before.requests.map((one) => [one.route, one]));
  const shards = new Map(before.shards.map((one) => [one.shard, one]));
  const counts = after.latency.counts.map((count, bucket) =>
    Math.max(0, count - (before.latency.counts[bucket] ?? 0)),
  );
  const quantile = (share: number): number | null => {
    const bucket = quantileBucket(counts, share);
    return bucket === undefined ? null : (after.latency.bounds_seconds[bucket] ?? null);
  };
  const { time, reasons, held, connections, streams, memory_bytes, disk_free_bytes, talkers } = after;
  return {
    time,
    reasons,
    held,
    connections,
    streams,
    cpu_cores: rate(after.cpu_seconds, before.cpu_seconds),
    memory_bytes,
    disk_free_bytes,
    requests: after.requests
      .map(({ route, answered, failed }) => ({
        route,
        per_second: rate(answered, routes.get(route)?.answered),
        failed_per_second: rate(failed, routes.get(route)?.failed),
      }))
      .sort((a, b) => b.per_second - a.per_second),
    latency: { p50_seconds: quantile(0.5), p99_seconds: quantile(0.99) },
    shards: after.shards.map(({ commits, writes, refused, ...shard }) => ({
      ...shard,
      commits_per_second: rate(commits, shards.get(shard.shard)?.commits),
      writes_per_second: rate(writes, shards.get(shard.shard)?.writes),
      refused_per_second: rate(refused, shards.get(shard.shard)?.refused),
    })),
    talkers,
  };
}

/** Maximum lines under the titles of each table. */
const linesMax = { routes: 12, shards: 1_024, talkers: 10 };
const unbounded: ScreenSize = { columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY };

/** Renders a server in lines: as many as fit, the first ones of each table. */
function topText(rates: TopRates, size = unbounded): string {
  const head = folded(summary(rates), size.columns);
  const { requests, shards, talkers } = rates;
  const lists = [
    requests.slice(0, linesMax.routes),
    shards.slice(0, linesMax.shards),
    talkers.slice(0, linesMax.talkers),
  ].map(({ length }) => length);
  // Each table has a title line and an empty line before it.
  const rowsLeft = size.rows - head.length - 2 * lists.filter((length) => length > 0).length;
  const [routesShown, shardsShown, talkersShown] = shared(rowsLeft, lists);
  const tables = [
    routeTable(requests.slice(0, routesShown)),
    shardTable(shards.slice(0, shardsShown)),
    talkerTable(talkers.slice(0, talkersShown)),
  ];
  return [...head, ...tables.flatMap((one) => (one === '' ? [] : ['', one]))].join('\n');
}

function summary({
  time,
  reasons,
  held,
  connections,
  streams,
  requests,
  latency,
  shards,
}: TopRates): string[] {
  const perSecond = requests.reduce((sum, { per_second }) => sum + per_second, 0);
  const mails = shards.reduce((sum, shard) => sum + shard.mails, 0);
  const devices = shards.reduce((sum, shard) => sum + shard.devices, 0);
  return [
    `Fleetpost  ${time}  ${reasons.length === 0 ? 'ready' : `NOT READY: ${reasons.join(', ')}`}`,
    ...(held ? ['HELD: forwarders, actions, broadcasts and delayed mail wait for "fleetpost release"'] : []),
    `${perSecond.toFixed(1)} requests/s, p50 ${within(latency.p50_seconds)}, p99 ${within(latency.p99_seconds)}; ` +
      `${connections} connections, ${streams} streams; ${devices} devices, ${mails} mails waiting`,
  ];
}

function routeTable(routes: TopRates['requests']): string {
  const rows = routes.map((one) => [one.route, rateText(one.per_second), rateText(one.failed_per_second)]);
  return rows.length === 0 ? '' : table(['Route', 'requests/s', '5xx/s'], rows, 1);
}

/** Puts the least important columns at the right, where a narrow terminal cuts them off. */
function shardTable(shards: TopRates['shards']): string {
  const titles = ['Shard', 'queue', 'commits/s', 'writes/s', 'refused/s', 'devices', 'mails', 'size', 'log'];
  const rows = shards.map((shard) => [
    String(shard.shard),
    String(shard.queue),
    rateText(shard.commits_per_second),
    rateText(shard.writes_per_second),
    rateText(shard.refused_per_second),
    String(shard.devices),
    String(shard.mails),
    mebibytes(shard.bytes),
    mebibytes(shard.log_bytes),
  ]);
  return rows.length === 0 ? '' : table(titles, rows, 1);
}

function talkerTable(talkers: TopRates['talkers']): string {
  const rows = talkers.map((one) => [
    one.fleet_id,
    one.device_id,
    `about ${rateText(one.requests_per_second)}`,
  ]);
  return rows.length === 0 ? '' : table(['Fleet', 'Top talker', 'requests/s'], rows, 2);
}

function within(seconds: number | null): string {
  return seconds === null ? '-' : `≤ ${Number((seconds * 1_000).toPrecision(6))} ms`;
}

/** Formats rates with the same number of decimals. */
function rateText(perSecond: number): string {
  return perSecond.toFixed(1);
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}

/** Wraps long lines between words. */
function folded(lines: readonly string[], columns: number): string[] {
  return lines.flatMap((line) => {
    const parts: string[] = [''];
    for (const word of line.split(/(?<= )(?=\S)/)) {
      const last = parts.length - 1;
      const current = parts[last] ?? '';
      if (current !== '' && (current + word).trimEnd().length > columns) parts.push(word);
      else parts[last] = current + word;
    }
    return parts.map((part) => part.trimEnd());
  });
}

/** Divides the rows among the lists: one at a time to each that wants more. */
function shared(rowsLeft: number, counts: readonly number[]): number[] {
  const shown = counts.map(() => 0);
  for (
    let left = Math.min(
      rowsLeft,
      counts.reduce((sum, lines) => sum + lines, 0),
    );
    left > 0;
  ) {
    for (const [index, lines] of counts.entries()) {
      if (left <= 0 || (shown[index] ?? 0) >= lines) continue;
      shown[index] = (shown[index] ?? 0) + 1;
      left -= 1;
    }
  }
  return shown;
}

type TopOptions = ConnectionOptions & { once?: boolean; interval: number };

/** Reconnects each time: a restarted server may have another address and token. */
function sample(options: TopOptions): Promise<TopDocument> {
  return connect(options).request('GET', pathTo('/top', {}));
}

async function once(options: TopOptions): Promise<TopRates> {
  const before = await sample(options);
  await sleep(options.interval * 1_000);
  return ratesOf(before, await sample(options));
}

/** Waits for a server that goes away; fails for one that is not there at the start. */
async function watch(options: TopOptions): Promise<void> {
  let before: TopDocument | undefined = await sample(options);
  using screen = new FullScreen(process.stdout, process.stdin);
  const { signal } = screen;
  const left = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined));
  });
  screen.show(() => 'Fleetpost: taking the first sample. Press q to quit.');
  while (!signal.aborted) {
    await sleep(options.interval * 1_000, signal);
    try {
      // Quitting does not wait for a server that does not answer.
      const after: TopDocument | undefined = await Promise.race([sample(options), left]);
      if (after === undefined) break;
      const rates = before && ratesOf(before, after);
      if (rates !== undefined) screen.show((size) => topText(rates, size));
      before = after;
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      before = undefined;
      screen.show(() => `${error.message}\nRetrying every ${options.interval} s. Press q to quit.`);
    }
  }
}

/** `top`. */
export function addTopCommand(program: Command): void {
  clientCommand(
    program,
    'top',
    'watch a running server: requests, latency, shards, streams, mail, top talkers',
  )
    .option('--once', 'print one sample and exit; implied without a terminal and by --json')
    .option('--interval <seconds>', 'time between two samples', integerOption(1, 3_600), 2)
    .action(async (options: TopOptions) => {
      if (!options.once && !options.json && process.stdout.isTTY) {
        await watch(options);
        // A pending request would delay the exit.
        process.exit();
      }
      const rates = await once(options);
      print(options, rates, topText(rates));
    });
}
