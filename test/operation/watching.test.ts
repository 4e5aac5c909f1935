import { fetch } from 'undici';
import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../src/core/identity.ts';
import { Talkers } from '../../src/http/talkers.ts';
import { fleetpost, fleetpostJson } from '../harness/command.ts';
import { createFleet } from '../harness/device.ts';
import { shards, TestServer } from '../harness/server.ts';

it('fleetpost top shows requests, shards, streams, mail and talkers; the dashboard names metrics that there are', {
  timeout: 180_000,
}, async () => {
  await using server = await TestServer.start();
  const fleet = await createFleet(server);
  const [loud, quiet] = [await fleet.createDevice(), await fleet.createDevice()];
  for (let mail = 0; mail < 3; mail += 1) await quiet.sendMail('note', '{}');
  await quiet.heartbeat();
  let isOver = false;
  const talking = (async () => {
    while (!isOver) await loud.heartbeat();
  })();
  const messages = (async () => {
    while (!isOver) await loud.request('POST', '/v1/msg/note', '{}');
  })();
  const talkers = async () =>
    (await server.admin<{ talkers: { device_id: string }[] }>('GET', '/top')).body.talkers;
  await expect
    .poll(async () => (await talkers())[0]?.device_id, { timeout: 40_000, interval: 250 })
    .toBe(loud.deviceId);
  const rates = await fleetpostJson(server, ['top', '--once', '--interval', '1']);
  const text = await fleetpost(['top', '--data', server.report.data, '--interval', '1']);
  isOver = true;
  await Promise.all([talking, messages]);
  const routes = Object.fromEntries(
    rates.requests.map((one: { route: string; per_second: number }) => [one.route, one.per_second]),
  );
  expect(routes['POST /v1/heartbeat']).toBeGreaterThan(0);
  expect(routes['POST /v1/msg/:schema_name']).toBeGreaterThan(0);
  expect(rates.reasons).toEqual([]);
  expect(rates.latency.p50_seconds).toBeGreaterThan(0);
  expect(rates.latency.p99_seconds).toBeGreaterThanOrEqual(rates.latency.p50_seconds);
  expect(rates.shards).toHaveLength(shards);
  const sum = (field: string): number =>
    rates.shards.reduce((total: number, shard: Record<string, number>) => total + (shard[field] ?? 0), 0);
  expect([sum('devices'), sum('mails')]).toEqual([3, 4]);
  expect(sum('writes_per_second')).toBeGreaterThan(0);
  expect(sum('bytes')).toBeGreaterThan(sum('log_bytes'));
  expect(text.status).toBe(0);
  expect(text.stdout).toMatch(/ready\n.* requests\/s, p50 ≤ .*4 mails waiting/);
  expect(text.stdout).toContain(loud.deviceId);
  expect(text.stdout).not.toContain('\u{1b}');

  const printed = await fleetpost(['dashboard']);
  const { panels } = JSON.parse(printed.stdout) as { panels: { targets?: { expr: string }[] }[] };
  const named = new Set(
    panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => expr.match(/\b(?:fleetpost|process)_[a-z_]+/g) ?? []),
    ),
  );
  const exposition = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  const known = new Map(
    [...exposition.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  );
  for (const name of named) {
    const base = name.replace(/_(bucket|sum|count)$/, '');
    expect(known.get(base) === 'histogram' || known.has(name), name).toBe(true);
  }
  const important =
    /^fleetpost_(requests?|connections?|streams|shard|commit|committed|writes|event_loop|action)_/;
  for (const name of known.keys()) {
    if (!important.test(name)) continue;
    expect(
      [...named].some((one) => one === name || one.startsWith(`${name}_`)),
      name,
    ).toBe(true);
  }
});

it('who talks most is found among any number of others, in bounded memory', () => {
  const talkers = new Talkers();
  const deviceOf = (n: number) => deviceKeyOf('FLEET001', `D${String(n).padStart(9, '0')}`);
  for (let request = 0; request < 400_000; request += 1) {
    talkers.heard(request % 10 === 0 ? deviceOf(7) : deviceOf(100 + request));
  }
  const all = talkers.loudest(1_000_000);
  expect(all.length).toBeLessThanOrEqual(4_096);
  const [first, second] = all;
  expect(first?.device).toBe(deviceOf(7));
  // A tenth of all; whoever else is there was heard once.
  const share = (first?.requestsPerSecond ?? 0) / (second?.requestsPerSecond ?? 0) / 4_096;
  expect(share).toBeGreaterThan(0.07);
  expect(share).toBeLessThan(0.13);
});
