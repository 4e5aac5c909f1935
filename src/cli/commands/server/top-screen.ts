import { table } from '../../output.ts';
import type { ScreenSize } from './full-screen.ts';
import type { TopRates } from './top-rates.ts';

/** Lines under the titles of each table, where there is room. */
const linesMax = { routes: 12, shards: 1_024, talkers: 10 };
const unbounded: ScreenSize = { columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY };

/** One picture of a server, in lines: no more than there is room for, of each table its first ones. */
export function topText(rates: TopRates, size = unbounded): string {
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
