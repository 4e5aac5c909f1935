import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { fleetpost, fleetpostJson } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';

const out = temporaryFolder();
const payload = '{"n": 12345678901234567890.10,\r\n "text": "a,\\"b\\" ä"}';
// The device sent it late (D25).
const recordedAt = new Date(Date.now() - 60_000).toISOString();
const payloadOnOneLine = payload.replace('\r\n', '  ');

let server: TestServer;
let fleet: TestFleet;
let device: TestDevice;

beforeAll(async () => {
  // A server of its own: cursors tell where its logs end, all of them.
  server = await TestServer.start();
  fleet = await createFleet(server);
  await fleet.putSchema('message', '-formula', { type: 'object' });
  device = await fleet.createDevice();
  await device.request('POST', '/v1/datapoint/reading', payload, { 'Recorded-At': recordedAt });
  for (let n = 0; n < 4; n += 1) await device.request('POST', '/v1/msg/-formula', `{"n":${n}}`);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(out, { recursive: true, force: true });
});

async function exported(format: string, ...more: string[]): Promise<string> {
  const file = join(out, `records.${format}`);
  rmSync(file, { force: true });
  const args = ['export', '--fleet', fleet.fleetId, '--format', format, '--out', file, ...more];
  expect(await fleetpostJson(server, args)).toMatchObject({ file, format });
  return file;
}

it('an export is written as lines, as a table and as Parquet, with payloads as they were sent (D11)', async () => {
  const lines = readFileSync(await exported('ndjson'), 'utf8')
    .trimEnd()
    .split('\n');
  expect(lines).toHaveLength(5);
  expect(lines[0]).toContain(`"payload":${payloadOnOneLine},"cursor":`);
  const [titles, first, second] = readFileSync(await exported('csv'), 'utf8').split('\n');
  expect(titles).toBe('record_id,device_id,kind,schema,stored_at,recorded_at,payload');
  expect(first).toContain(`"${payloadOnOneLine.replaceAll('"', '""')}"`);
  expect(second).toContain(`,message,'-formula,`);
  const bytes = readFileSync(await exported('parquet', '--kind', 'datapoint', '--since', '1h'));
  const rows = await parquetReadObjects({ file: Uint8Array.from(bytes).buffer });
  const { record_id, stored_at } = JSON.parse(lines[0] as string) as { record_id: string; stored_at: string };
  const time = new Date(stored_at);
  expect(rows).toEqual([
    {
      ...{ record_id, device_id: device.deviceId, kind: 'datapoint', schema: 'reading' },
      ...{ stored_at: time, recorded_at: new Date(recordedAt), payload: payloadOnOneLine },
    },
  ]);
  const kinds = ['--kind', 'datapoint', '--kind', 'message', '--device', device.deviceId];
  expect(readFileSync(await exported('ndjson', ...kinds), 'utf8')).toBe(`${lines.join('\n')}\n`);
  expect(
    await fleetpostJson(server, [
      'export',
      '--fleet',
      fleet.fleetId,
      '--out',
      join(out, 'none'),
      '--until',
      '1h',
    ]),
  ).toMatchObject({ records: 0 });
  // Nothing is left beside them.
  expect(readdirSync(out).sort()).toEqual(['none', 'records.csv', 'records.ndjson', 'records.parquet']);
});

it('an export that was ended is gone on with, behind its last whole line', async () => {
  const file = join(out, 'again.ndjson');
  const args = ['export', '--fleet', fleet.fleetId, '--out', file];
  await fleetpostJson(server, args);
  const text = readFileSync(file, 'utf8');
  // A kill leaves the file under another name, cut off in the midst of the third line.
  const lines = text.split('\n');
  const cut = `${lines.slice(0, 2).join('\n')}\n${lines[2]?.slice(0, 40)}`;
  rmSync(file);
  const refused = await fleetpost([...args, '--data', server.report.data, '--device', 'SHORT']);
  expect([refused.status, refused.stderr]).toEqual([1, 'fleetpost: There is no such device.\n']);
  const { hash } = await import('node:crypto');
  const asked = JSON.stringify([fleet.fleetId, 'ndjson', null, null, null, null, null, null]);
  writeFileSync(`${file}.${hash('sha256', asked).slice(0, 12)}.partial`, cut);
  expect(await fleetpostJson(server, args)).toMatchObject({ records: 3, resumed: true });
  expect(readFileSync(file, 'utf8')).toBe(text);
});

it('consumers are kept and read from on the command line', async () => {
  const at = ['--fleet', fleet.fleetId];
  const consumer = (...args: string[]) => fleetpostJson(server, ['consumer', ...args, ...at]);
  expect(await consumer('create', 'hall', '--kind', 'datapoint')).toMatchObject({ kinds: ['datapoint'] });
  const { batch_id, records } = await consumer('fetch', 'hall', '--worker', 'me');
  expect(records).toHaveLength(1);
  const shown = await fleetpost(['consumer', 'show', 'hall', ...at, '--data', server.report.data]);
  expect(shown.stdout).toMatch(/1 until \S+ +me/);
  expect(await consumer('release', 'hall', batch_id)).toEqual({ records: 1 });
  const again = await consumer('fetch', 'hall');
  expect(await consumer('ack', 'hall', again.batch_id)).toEqual({ records: 1 });
  // An option that is absent keeps its value: a longer lease does not widen the filter.
  const longer = { kinds: ['datapoint'], schemas: [], lease_seconds: 90 };
  expect(await consumer('create', 'hall', '--lease-seconds', '90')).toMatchObject(longer);
  expect(await consumer('create', 'hall', '--schema', 'reading')).toMatchObject({
    ...longer,
    schemas: ['reading'],
  });
  expect(await consumer('pause', 'hall')).toMatchObject({ lease_seconds: 90, enabled: false });
  expect(await consumer('fetch', 'hall')).toMatchObject({ batch_id: null, paused: true });
  const resumed = await fleetpost(['consumer', 'resume', 'hall', ...at, '--data', server.report.data]);
  expect(resumed.stdout).toBe('hall is resumed.\n');
  expect((await consumer('list')).items).toMatchObject([{ name: 'hall', enabled: true }]);
  expect(await consumer('delete', 'hall')).toEqual({ ok: true });
});

it('the newest records are listed first, and a device is shown with its latest datapoints, as they were sent', async () => {
  const other = await createFleet(server);
  const sensor = await other.createDevice();
  const listed = (...more: string[]) =>
    fleetpostJson(server, ['record', 'list', '--fleet', other.fleetId, ...more]);
  expect(await listed()).toEqual({ items: [], partial: false });
  for (const schema of ['water', 'heat']) await other.putSchema('datapoint', schema, { type: 'object' });
  for (const n of ['1', '2', '12345678901234567890']) {
    for (const schema of ['water', 'heat']) {
      await sensor.request('POST', `/v1/datapoint/${schema}`, `{"n":${n}}`);
    }
  }
  await sensor.request('POST', '/v1/msg/note', '{"n":4}');
  await device.request('POST', '/v1/datapoint/reading', '{"n":5}');
  const schemas = async (...more: string[]): Promise<string[]> =>
    (await listed(...more)).items.map((one: { schema: string }) => one.schema);
  expect(await schemas('--limit', '3')).toEqual(['note', 'heat', 'water']);
  expect(await schemas('--per-schema', '--kind', 'datapoint')).toEqual(['heat', 'water']);
  expect(await schemas('--schema', 'water', '--device', sensor.deviceId)).toHaveLength(3);
  const data = ['--data', server.report.data];
  const table = await fleetpost(['record', 'list', '--fleet', other.fleetId, '--limit', '2', ...data]);
  expect(table.stdout).toMatch(/^\S+ {2}\w{10} {2}message {2}note {2}\{"n":4\}\n.*12345678901234567890\}\n$/);
  const show = ['device', 'show', sensor.deviceId, '--fleet', other.fleetId];
  const { stdout } = await fleetpost([...show, ...data]);
  expect(stdout).toMatch(/^latest {2,}\S+ {2}heat {2}\{"n":12345678901234567890\}\n +\S+ {2}water {2}/m);
  expect((await fleetpost([...show, '--json', ...data])).stdout).toContain('"n":12345678901234567890');
});
