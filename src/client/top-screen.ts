import { table } from './output.ts';
import type { TopRates } from './top-rates.ts';

const talkersShown = 10;
const routesShown = 12;

function latency(seconds: number | null): string {
  return seconds === null ? '-' : `≤ ${seconds * 1_000} ms`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}

/** One picture of a server, in lines. */
export function topText(rates: TopRates): string {
  const { time, reasons, connections, streams, requests, shards, talkers } = rates;
  const perSecond = requests.reduce((sum, { per_second }) => sum + per_second, 0);
  const mails = shards.reduce((sum, shard) => sum + shard.mails, 0);
  const devices = shards.reduce((sum, shard) => sum + shard.devices, 0);
  const parts = [
    `Fleetpost  ${time}  ${reasons.length === 0 ? 'ready' : `NOT READY: ${reasons.join(', ')}`}`,
    `${perSecond.toFixed(1)} requests/s, p50 ${latency(rates.latency.p50_seconds)}, p99 ${latency(rates.latency.p99_seconds)}; ` +
      `${connections} connections, ${streams} streams; ${devices} devices, ${mails} mails waiting`,
    '',
    table(
      ['Route', 'requests/s', '5xx/s'],
      requests
        .slice(0, routesShown)
        .map(({ route, per_second, failed_per_second }) => [
          route,
          String(per_second),
          String(failed_per_second),
        ]),
    ),
    '',
    table(
      ['Shard', 'queue', 'commits/s', 'writes/s', 'refused/s', 'size', 'log', 'devices', 'mails'],
      shards.map((shard) => [
        String(shard.shard),
        String(shard.queue),
        String(shard.commits_per_second),
        String(shard.writes_per_second),
        String(shard.refused_per_second),
        mebibytes(shard.bytes),
        mebibytes(shard.log_bytes),
        String(shard.devices),
        String(shard.mails),
      ]),
    ),
  ];
  if (talkers.length > 0) {
    const rows = talkers
      .slice(0, talkersShown)
      .map(({ fleet_id, device_id, requests_per_second }) => [
        fleet_id,
        device_id,
        `about ${requests_per_second}`,
      ]);
    parts.push('', table(['Fleet', 'Biggest talker', 'requests/s'], rows));
  }
  return parts.join('\n');
}
