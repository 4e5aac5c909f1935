import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { Receiver } from '../../harness/features/receiver.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { engine, TestServer, temporaryFolder } from '../../harness/server/server.ts';

const patience = { timeout: 60_000, interval: 50 };
const folder = temporaryFolder();
let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;
let receiver: Receiver;
beforeAll(async () => {
  [server, receiver] = await Promise.all([TestServer.shared(), Receiver.start()]);
  fleet = await createFleet(server);
  device = await fleet.createDevice();
});
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const forwarder = (...args: string[]) =>
  fleetpostJson(server, ['forwarder', ...args, '--fleet', fleet.fleetId]);
/** Runs the command and returns what a person sees. */
const shown = (...args: string[]) =>
  fleetpost(['forwarder', ...args, '--fleet', fleet.fleetId, '--data', server.report.data]);

it('forwarders are put, looked at, paused, and their dead letters dealt with by commands', async () => {
  const caFile = join(folder, 'ca.pem');
  const secretsFile = join(folder, 'secrets.json');
  writeFileSync(caFile, receiver.ca);
  writeFileSync(secretsFile, JSON.stringify({ headers: { 'X-Key': 'hidden' } }));
  const files = ['--ca', caFile, '--secrets', secretsFile];
  const put = await shown(
    'put',
    'hook',
    '--webhook',
    receiver.url,
    '--kind',
    'message',
    '--timeout',
    '5',
    ...files,
  );
  expect(put).toMatchObject({ status: 0, stderr: '' });
  [receiver.secret = ''] = /whsec_\S+/.exec(put.stdout) ?? [];
  expect(put.stdout).toContain('not shown again');
  // The folder's mode keeps out everybody else who may look into the data folder.
  if (engine === 'lmdb') expect(statSync(join(server.report.data, 'registry')).mode & 0o777).toBe(0o700);

  expect(put.stdout).toContain('forwarder test hook');
  expect((await shown('test', 'hook')).stdout).toMatch(/^The test event was delivered \(\d+ ms\)\.\n$/);
  expect(JSON.stringify(receiver.taken)).toContain('fleetpost-test');
  receiver.batches.splice(0);
  const nothing = await shown('put', 'none', '--nats', 'nats://127.0.0.1:1', '--kind', 'receipt');
  expect(nothing.stdout).toContain('Warning: 127.0.0.1:1 takes no connections (ECONNREFUSED).');
  const failed = await shown('test', 'none');
  expect(failed).toMatchObject({ status: 1, stderr: 'fleetpost: NATS is unreachable (ECONNREFUSED).\n' });
  expect(await forwarder('delete', 'none')).toEqual({ ok: true });

  receiver.react = () => ({ status: 422 });
  await device.request('POST', '/v1/datapoint/reading', { n: 1 });
  await device.request('POST', '/v1/msg/note', '{"n":9007199254740993}');
  await vi.waitFor(async () => expect((await forwarder('show', 'hook')).dead_letters).toBe(1), patience);
  expect(receiver.batches[0]?.headers['x-key']).toBe('hidden');
  expect((await shown('list')).stdout).toMatch(/hook +webhook +https:\S+ +running .*status 422/);
  const { items } = await forwarder('dead-letters', 'hook');
  expect(items).toMatchObject([{ device_id: device.deviceId, kind: 'message', schema: 'note' }]);
  const letter = await shown('dead-letters', 'hook', items[0].record_id, '--json');
  expect(letter.stdout).toContain('"payload":{"n":9007199254740993}');
  expect((await shown('replay', 'hook')).stderr).toContain('--all');

  receiver.react = () => ({ status: 200 });
  expect(await forwarder('replay', 'hook', items[0].record_id)).toEqual({ replayed: 1 });
  await vi.waitFor(async () => {
    const path = `/fleets/${fleet.fleetId}/forwarders/hook`;
    expect((await server.admin('GET', path)).body).toMatchObject({ dead_letters: 0, delivered: 1 });
  }, patience);
  expect(receiver.taken.length).toBe(1);
  expect((await shown('list')).stdout).not.toContain('422');
  expect((await shown('show', 'hook')).stdout).toMatch(/last_error +\S+ .*422.* Recovered at /);
  expect(await forwarder('drop', 'hook', '--all', '--yes')).toEqual({ dropped: 0 });
  expect(await forwarder('pause', 'hook')).toMatchObject({ state: 'paused' });
  expect((await shown('rotate-secret', 'hook', '--grace', '60')).stdout).toContain('whsec_');
  expect((await shown('resume', 'hook')).stdout).toBe('hook is resumed.\n');
  expect((await shown('put', 'hook')).stderr).toContain('--webhook URL or --nats SERVER');
  expect(await forwarder('delete', 'hook')).toEqual({ ok: true });
  expect((await shown('list')).stdout).toBe('This fleet has no forwarders.\n');
  expect(receiver.badSignatures).toEqual([]);
});
