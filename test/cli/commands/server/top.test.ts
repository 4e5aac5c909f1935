import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { alerts } from '../../../../src/cli/commands/server/prometheus-alerts.ts';
import { createFleet } from '../../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../../harness/server/command.ts';
import { engine, mainFile, shards, TestServer } from '../../../harness/server/server.ts';

it('fleetpost top shows requests, shards, streams, mail and talkers; dashboard and alerts name metrics that there are', {
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
  const mails = async () => {
    const { body } = await server.admin<{ shards: { mails: number }[] }>('GET', '/top');
    return body.shards.reduce((sum, shard) => sum + shard.mails, 0);
  };
  await expect
    .poll(async () => (await talkers())[0]?.device_id, { timeout: 40_000, interval: 250 })
    .toBe(loud.deviceId);
  // Some engines are asked what they hold only now and then.
  await expect.poll(mails, { timeout: 40_000, interval: 250 }).toBe(3);
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
  expect(rates.memory_bytes).toBeGreaterThan(1_000_000);
  expect(rates.cpu_cores).toBeGreaterThanOrEqual(0);
  expect(rates.latency.p50_seconds).toBeGreaterThan(0);
  expect(rates.latency.p99_seconds).toBeGreaterThanOrEqual(rates.latency.p50_seconds);
  expect(rates.shards).toHaveLength(shards);
  const sum = (field: string): number =>
    rates.shards.reduce((total: number, shard: Record<string, number>) => total + (shard[field] ?? 0), 0);
  expect([sum('devices'), sum('mails')]).toEqual([2, 3]);
  expect(sum('writes_per_second')).toBeGreaterThan(0);
  expect(sum('bytes')).toBeGreaterThan(sum('log_bytes'));
  expect(text.status).toBe(0);
  expect(text.stdout).toMatch(/ready\n.* requests\/s, p50 ≤ .*\d mails waiting/);
  expect(text.stdout).toContain(' 3 mails waiting');
  expect(text.stdout).toContain(loud.deviceId);
  expect(text.stdout).not.toContain('\u{1b}');

  const printed = await fleetpost(['dashboard']);
  const { panels } = JSON.parse(printed.stdout) as { panels: { targets?: { expr: string }[] }[] };
  const named = new Set(
    panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => expr.match(/\b(?:fleetpost|process)_[a-z_]+/g) ?? []),
    ),
  );
  // Every alert can be looked into there.
  const watched = alerts.flatMap(({ expression }) => expression.match(/\bfleetpost_[a-z_]+/g) ?? []);
  expect(watched.filter((name) => !named.has(name))).toEqual([]);
  expect(printed.stdout).toContain(alerts.map(({ name }) => name).join('|'));
  const exposition = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  const known = new Map(
    [...exposition.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  );
  // Backups are of a data folder.
  if (engine === 'postgres') named.delete('fleetpost_backup_timestamp_seconds');
  for (const name of named) {
    const base = name.replace(/_(bucket|sum|count)$/, '');
    expect(known.get(base) === 'histogram' || known.has(name), name).toBe(true);
  }
  const isCounter = ([name, type]: [string, string]): boolean =>
    type === 'counter' || !name.endsWith('_total');
  expect([...known].filter((one) => !isCounter(one))).toEqual([]);
  const values = (name: string): number[] =>
    [...exposition.matchAll(new RegExp(`^${name}(?:{.*})? (\\S+)$`, 'gm'))].map(([, value]) => Number(value));
  const total = (name: string): number => values(name).reduce((all, value) => all + value, 0);
  expect([total('fleetpost_mails_waiting'), values('fleetpost_lockouts')]).toEqual([3, [0]]);
  expect(total('fleetpost_shard_bytes')).toBeGreaterThan(total('fleetpost_log_bytes'));
  expect(exposition).toMatch(/^fleetpost_ready\{reason="none"\} 1$/m);
  expect(exposition).toMatch(/^fleetpost_build_info\{version="\d+\.\d+\.\d+"\} 1$/m);
  const important =
    /^fleetpost_(requests?|connections?|streams|shard|commit|committed|writes|event_loop|action|consumer|forwarder|broadcasts?)_/;
  for (const name of known.keys()) {
    if (!important.test(name)) continue;
    expect(
      [...named].some((one) => one === name || one.startsWith(`${name}_`)),
      name,
    ).toBe(true);
  }
});

/** Returns what a terminal of that size is sent until `isEnough`, and q is pressed. */
async function drawn(
  server: TestServer,
  columns: number,
  rows: number,
  isEnough: (text: string) => boolean,
): Promise<string> {
  const top = `${process.execPath} ${mainFile} top --data ${server.report.data} --interval 1`;
  const command = `stty cols ${columns} rows ${rows}; exec ${top}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  await expect.poll(() => isEnough(text)).toBe(true);
  child.stdin.write('q');
  expect((await exited)[0]).toBe(0);
  return text;
}

it('on a terminal it draws what there is room for, until q, and leaves the terminal as it was', async () => {
  const server = await TestServer.shared();
  const text = await drawn(server, 40, 12, (sent) => sent.split('Shard  queue').length > 2);
  expect(text.startsWith('\u{1b}[?1049h\u{1b}[?25l')).toBe(true);
  expect(text.endsWith('\u{1b}[?25h\u{1b}[?1049l')).toBe(true);
  const pictures = text.split('\u{1b}[H').slice(1);
  expect(pictures.length).toBeGreaterThan(2);
  for (const picture of pictures) {
    const lines = stripVTControlCharacters(picture).split('\r\n');
    expect(lines.length).toBeLessThanOrEqual(12);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(40);
  }
});
