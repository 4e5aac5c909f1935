import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { DeviceDocument } from '../../../../src/contract/device.ts';
import type { ListDocument } from '../../../../src/contract/document.ts';
import type { WaitingMailDocument } from '../../../../src/contract/mail.ts';
import type { RecordDocument } from '../../../../src/contract/record.ts';
import { type CommandResult, fleetpostProcess } from '../../../harness/server/command.ts';
import { TestServer } from '../../../harness/server/server.ts';

interface Report {
  passed: boolean;
  fleet_id: string;
  kills: number;
  check: Record<'lost' | 'doubled' | 'out_of_order' | 'unknown' | 'records' | 'mail_changes', number>;
  counts: Record<string, number>;
}

const clean = { lost: 0, doubled: 0, out_of_order: 0, unknown: 0 };

function reportOf({ stdout, stderr }: CommandResult): Report {
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout) as Report;
}

function simulate(server: TestServer, ...args: string[]): Promise<CommandResult> {
  const { url, data, cert_file: ca } = server.report;
  return fleetpostProcess(['simulate', ...args, '--data', data, '--url', url, '--ca', ca, '--json']);
}

/** Waits for what a run has come to. */
async function until<T>(find: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const list = async <T>(server: TestServer, path: string): Promise<T[]> =>
  (await server.admin<ListDocument<T>>('GET', path)).body.items ?? [];

/** The fleet of the run under way. */
async function fleetOf(server: TestServer): Promise<string> {
  return until(async () => {
    const [fleet] = await list<{ fleet_id: string }>(server, '/fleets');
    return fleet?.fleet_id;
  });
}

it('a fleet of all profiles whose server is killed loses, doubles and disorders nothing', async () => {
  const args = ['simulate', '--chaos', '--devices', '120', '--for', '20s', '--speed', '5', '--json'];
  const result = await fleetpostProcess([...args, '--assert', 'errors=0, mails>0, sync.count>0']);
  const report = reportOf(result);
  expect(report.check, result.stdout).toMatchObject(clean);
  expect(report.kills).toBeGreaterThan(0);
  expect(report.check.records).toBeGreaterThan(100);
  expect(report.check.mail_changes).toBeGreaterThan(50);
  expect(result.status, result.stdout).toBe(0);
});

it('a scenario of a file runs on a server that is there, and clean removes its fleet', async () => {
  await using server = await TestServer.start();
  const scenario = {
    devices: 30,
    for: '4s',
    mix: { valve: 1 },
    profiles: {
      valve: {
        heartbeat: { every: '1s', spread: 'fixed' },
        datapoints: [{ schema: 'flow', every: '500ms' }],
        mail: { by: 'stream', think: '50ms', name: 'open', every: '2s' },
      },
    },
    schemas: {
      datapoint: {
        flow: { type: 'object', properties: { litres: { type: 'number' } }, required: ['litres'] },
      },
      mail: { open: { type: 'object', properties: { seconds: { type: 'integer', minimum: 1 } } } },
    },
    events: [
      { at: '0s', event: 'ramp', over: '500ms' },
      { at: '2s', event: 'storm' },
    ],
  };
  const file = join(mkdtempSync(join(tmpdir(), 'fleetpost-test-')), 'scenario.json');
  writeFileSync(file, JSON.stringify(scenario));
  const missed = await simulate(server, 'run', file, '--assert', 'datapoint.count>1000000');
  expect(missed.status).toBe(1);
  expect(reportOf(missed).check).toMatchObject(clean);
  expect(reportOf(missed).check.records).toBeGreaterThan(30);
  const removed = await fleetpostProcess(['simulate', 'clean', '--data', server.report.data, '--json']);
  expect(JSON.parse(removed.stdout)).toEqual({ removed: [reportOf(missed).fleet_id] });
  await until(async () => ((await list(server, '/fleets')).length === 0 ? true : undefined));
});

it('the check fails where a mail was taken away from its device', async () => {
  await using server = await TestServer.start();
  const running = simulate(server, '--devices', '20', '--for', '8s', '--speed', '60', '--profile', 'sleeper');
  const fleet = await fleetOf(server);
  await until(async () => {
    for (const { device_id, mailbox_size } of await list<DeviceDocument>(
      server,
      `/fleets/${fleet}/devices`,
    )) {
      if (mailbox_size === 0) continue;
      const path = `/fleets/${fleet}/devices/${device_id}/mail`;
      for (const { mail_id } of await list<WaitingMailDocument>(server, path)) {
        const { status } = await server.admin('DELETE', `${path}/${mail_id}`);
        if (status === 200) return true;
      }
    }
    return undefined;
  });
  const result = await running;
  expect(result.status, result.stdout).toBe(1);
  expect(reportOf(result).check.lost, result.stdout).toBeGreaterThan(0);
});

it('the check fails where another sends in the name of a device, with the time of a reading that is there', async () => {
  await using server = await TestServer.start();
  const running = simulate(server, '--devices', '20', '--for', '8s', '--speed', '30', '--profile', 'tracker');
  const fleet = await fleetOf(server);
  const record = await until(async () => {
    const [first] = await list<RecordDocument>(
      server,
      `/fleets/${fleet}/records:latest?kind=datapoint&limit=1`,
    );
    return first;
  });
  const path = `/fleets/${fleet}/devices/${record.device_id}/rotate-secret`;
  const { body } = await server.admin('POST', path, { grace_seconds: 60 });
  const response = await fetch(`${server.url}/v1/datapoint/${record.schema}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-fleet-id': fleet,
      'x-device-id': record.device_id,
      'x-device-secret': String(body.device_secret),
      'recorded-at': record.recorded_at ?? '',
    },
    body: JSON.stringify(record.payload),
    // An option of undici, which Node's own types do not know.
    ...({ dispatcher: server.agent } as object),
  });
  expect(response.status).toBe(201);
  const result = await running;
  expect(result.status, result.stdout).toBe(1);
  expect(reportOf(result).check, result.stdout).toMatchObject({ lost: 0, doubled: 1 });
});

it('a server elsewhere is not loaded by mistake', async () => {
  await using server = await TestServer.start();
  const { data, cert_file: ca } = server.report;
  const { status, stderr } = await fleetpostProcess([
    'simulate',
    '--devices',
    '1',
    '--for',
    '1s',
    '--data',
    data,
    '--ca',
    ca,
    '--url',
    'https://192.0.2.1:8443',
  ]);
  expect(status).toBe(1);
  expect(stderr).toContain('https://192.0.2.1:8443 is not on this machine: give its --token or --context');
});
