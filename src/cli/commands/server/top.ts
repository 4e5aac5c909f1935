import type { Command } from 'commander';
import { sleep } from '../../../core/async.ts';
import { OperatorError } from '../../../core/errors.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { clientCommand, integerOption } from '../../options.ts';
import { print, table } from '../../output.ts';
import { FullScreen, type ScreenSize } from './full-screen.ts';

/** What `GET /top` answers. */
interface TopSample {
  time: string;
  reasons: string[];
  connections: number;
  streams: number;
  requests: { route: string; answered: number; failed: number }[];
  latency: { bounds_seconds: number[]; counts: number[] };
  shards: {
    shard: number;
    queue: number;
    commits: number;
    writes: number;
    refused: number;
    bytes: number;
    log_bytes: number;
    devices: number;
    mails: number;
  }[];
  talkers: { fleet_id: string; device_id: string; requests_per_second: number }[];
}

/** What happened between two samples. */
interface TopRates {
  time: string;
  reasons: string[];
  connections: number;
  streams: number;
  requests: { route: string; per_second: number; failed_per_second: number }[];
  /** Upper bounds of the buckets that they are in; null where nothing was answered, or beyond all bounds. */
  latency: { p50_seconds: number | null; p99_seconds: number | null };
  shards: {
    shard: number;
    queue: number;
    commits_per_second: number;
    writes_per_second: number;
    refused_per_second: number;
    bytes: number;
    log_bytes: number;
    devices: number;
    mails: number;
  }[];
  talkers: TopSample['talkers'];
}

function ratesOf(before: TopSample, after: TopSample): TopRates {
  const seconds = Math.max(0.001, (Date.parse(after.time) - Date.parse(before.time)) / 1_000);
  // A server that was started again counts from 0.
  const rate = (now: number, then = 0): number =>
    Math.round((Math.max(0, now >= then ? now - then : now) / seconds) * 10) / 10;
  const routes = new Map(before.requests.map((one) => [one.route, one]));
  const shards = new Map(before.shards.map((one) => [one.shard, one]));
  const counts = after.latency.counts.map((count, bucket) =>
    Math.max(0, count - (before.latency.counts[bucket] ?? 0)),
  );
  const quantile = (share: number): number | null => quantileOf(counts, after.latency.bounds_seconds, share);
  const { time, reasons, connections, streams, talkers } = after;
  return {
    time,
    reasons,
    connections,
    streams,
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

function quantileOf(counts: readonly number[], bounds: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let passed = 0;
  for (const [bucket, count] of counts.entries()) {
    passed += count;
    if (total > 0 && passed >= total * share) return bounds[bucket] ?? null;
  }
  return null;
}

/** Lines under the titles of each table, where there is room. */
const linesMax = { routes: 12, shards: 1_024, talkers: 10 };
const unbounded: ScreenSize = { columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY };

/** One picture of a server, in lines: no more than there is room for, of each table its first ones. */
function topText(rates: TopRates, size = unbounded): string {
  const head = folded(summary(rates), size.columns);
  const { requests, shards, talkers } = rates;
  const lists = [
    requests.slice(0, linesMax.routes),
    shards.slice(0, linesMax.shards),
    talkers.slice(0, linesMax.talkers),
  ].map(({ length }) => length);
  // Each has titles and an empty line before it.
  const room = size.rows - head.length - 2 * lists.filter((length) => length > 0).length;
  const [routesShown, shardsShown, talkersShown] = shared(room, lists);
  const tables = [
    routeTable(requests.slice(0, routesShown)),
    shardTable(shards.slice(0, shardsShown)),
    talkerTable(talkers.slice(0, talkersShown)),
  ];
  return [...head, ...tables.flatMap((one) => (one === '' ? [] : ['', one]))].join('\n');
}

function summary({ time, reasons, connections, streams, requests, latency, shards }: TopRates): string[] {
  const perSecond = requests.reduce((sum, { per_second }) => sum + per_second, 0);
  const mails = shards.reduce((sum, shard) => sum + shard.mails, 0);
  const devices = shards.reduce((sum, shard) => sum + shard.devices, 0);
  return [
    `Fleetpost  ${time}  ${reasons.length === 0 ? 'ready' : `NOT READY: ${reasons.join(', ')}`}`,
    `${perSecond.toFixed(1)} requests/s, p50 ${within(latency.p50_seconds)}, p99 ${within(latency.p99_seconds)}; ` +
      `${connections} connections, ${streams} streams; ${devices} devices, ${mails} mails waiting`,
  ];
}

function routeTable(routes: TopRates['requests']): string {
  const rows = routes.map((one) => [one.route, rateText(one.per_second), rateText(one.failed_per_second)]);
  return rows.length === 0 ? '' : table(['Route', 'requests/s', '5xx/s'], rows, 1);
}

/** What can be done without stands at the right, where a narrow terminal ends. */
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
  return rows.length === 0 ? '' : table(['Fleet', 'Biggest talker', 'requests/s'], rows, 2);
}

function within(seconds: number | null): string {
  return seconds === null ? '-' : `≤ ${Number((seconds * 1_000).toPrecision(6))} ms`;
}

/** With as many decimals in each row. */
function rateText(perSecond: number): string {
  return perSecond.toFixed(1);
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}

/** Lines that are too long, between their words. */
function folded(lines: readonly string[], columns: number): string[] {
  return lines.flatMap((line) => {
    const parts: string[] = [''];
    for (const word of line.split(/(?<= )(?=\S)/)) {
      const last = parts.length - 1;
      const begun = parts[last] ?? '';
      if (begun !== '' && (begun + word).trimEnd().length > columns) parts.push(word);
      else parts[last] = begun + word;
    }
    return parts.map((part) => part.trimEnd());
  });
}

/** Lines of each list when there is room for so many: one after another to each that wants more. */
function shared(room: number, wanted: readonly number[]): number[] {
  const shown = wanted.map(() => 0);
  for (
    let left = Math.min(
      room,
      wanted.reduce((sum, lines) => sum + lines, 0),
    );
    left > 0;
  ) {
    for (const [index, lines] of wanted.entries()) {
      if (left <= 0 || (shown[index] ?? 0) >= lines) continue;
      shown[index] = (shown[index] ?? 0) + 1;
      left -= 1;
    }
  }
  return shown;
}

type TopOptions = ConnectionOptions & { once?: boolean; interval: number };

/** Connects anew each time: a server that was started again may have another address and another token. */
function sample(options: TopOptions): Promise<TopSample> {
  return connect(options).request<TopSample>('GET', '/top');
}

async function once(options: TopOptions): Promise<TopRates> {
  const before = await sample(options);
  await sleep(options.interval * 1_000);
  return ratesOf(before, await sample(options));
}

/** A server that goes away is waited for; one that is not there at the beginning is an error. */
async function watch(options: TopOptions): Promise<void> {
  let before: TopSample | undefined = await sample(options);
  using screen = new FullScreen(process.stdout, process.stdin);
  const { signal } = screen;
  const left = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined));
  });
  screen.show(() => 'Fleetpost: looking for a moment. q ends.');
  while (!signal.aborted) {
    await sleep(options.interval * 1_000, signal);
    try {
      // Whoever leaves does not wait for a server that does not answer.
      const after: TopSample | undefined = await Promise.race([sample(options), left]);
      if (after === undefined) break;
      const rates = before && ratesOf(before, after);
      if (rates !== undefined) screen.show((size) => topText(rates, size));
      before = after;
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      before = undefined;
      screen.show(() => `${error.message}\nTried again every ${options.interval} s. q ends.`);
    }
  }
}

/** `top`. */
export function addTopCommand(program: Command): void {
  clientCommand(program, 'top', 'watch a running server: requests, latency, shards, streams, mail, talkers')
    .option('--once', 'print one picture and end; as without a terminal, and with --json')
    .option('--interval <seconds>', 'time between two pictures', integerOption(1, 3_600), 2)
    .action(async (options: TopOptions) => {
      if (!options.once && !options.json && process.stdout.isTTY) {
        await watch(options);
        // A question that nobody waits for would hold up the end.
        process.exit();
      }
      const rates = await once(options);
      print(options, rates, topText(rates));
    });
}
