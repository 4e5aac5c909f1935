import { beforeAll, expect, it } from 'vitest';
import type { SeriesDocument } from '../../../src/contract/monitoring/series.ts';
import { createFleet, type TestDevice } from '../../harness/devices/device.ts';
import { TestServer } from '../../harness/server/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.shared();
});

async function seriesOf(device: TestDevice, query: string): Promise<SeriesDocument> {
  const { status, body } = await server.admin<SeriesDocument>('GET', `${device.adminPath}/series?${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

it('the numbers of one device and one schema are charted', async () => {
  const fleet = await createFleet(server);
  for (const schema of ['climate', 'power']) await fleet.putSchema('datapoint', schema, { type: 'object' });
  const [device, other] = [await fleet.createDevice(), await fleet.createDevice()];
  for (let celsius = 1; celsius <= 40; celsius += 1) {
    const body = { celsius, inner: { humidity: 50 }, label: 'x' };
    expect((await device.request('POST', '/v1/datapoint/climate', body)).status).toBe(201);
  }
  await device.request('POST', '/v1/datapoint/power', { watts: 9 });
  await other.request('POST', '/v1/datapoint/climate', { celsius: 900 });

  const whole = await seriesOf(device, 'schema=climate&points=1');
  expect(whole).toMatchObject({ partial: false, complete_from: whole.from });
  expect(whole.fields).toEqual([
    { field: '/celsius', buckets: [0], min: [1], mean: [20.5], max: [40], count: [40] },
  ]);
  const named = await seriesOf(device, 'schema=climate&points=1&fields=/inner/humidity&fields=/label');
  expect(named.fields).toMatchObject([{ field: '/inner/humidity', mean: [50], count: [40] }]);
  const long = await seriesOf(device, 'schema=climate&points=1000');
  const [celsius] = long.fields;
  expect(celsius?.count.reduce((sum, count) => sum + count, 0)).toBe(40);
  expect(Date.parse(long.to) - Date.parse(long.from)).toBeLessThanOrEqual(long.bucket_ms * 1_000);
  const recorded = new Date(Date.now() - 3_600_000).toISOString();
  const late = await device.request('POST', '/v1/datapoint/power', { watts: 7 }, { 'Recorded-At': recorded });
  expect(late.status).toBe(201);
  const power = await seriesOf(device, 'schema=power&points=24');
  expect(power.fields).toMatchObject([{ mean: [7, 9], count: [1, 1] }]);
  // What a device kept back is in the chart of the time that it is of, though it was stored later.
  const aroundMs = Date.parse(recorded);
  const [from, to] = [-60_000, 60_000].map((ms) => new Date(aroundMs + ms).toISOString());
  expect((await seriesOf(device, `schema=power&from=${from}&to=${to}`)).fields).toMatchObject([
    { count: [1] },
  ]);
  const past = await seriesOf(device, `schema=climate&to=${encodeURIComponent(whole.from)}`);
  expect(past).toMatchObject({ fields: [], partial: false });
});

it('what is no chart is refused', async () => {
  const device = await (await createFleet(server)).createDevice();
  for (const query of [
    '',
    'schema=a&fields=celsius',
    'schema=a&points=1001',
    'schema=a&from=2030-01-01T00:00:00Z',
  ]) {
    const { status } = await server.admin('GET', `${device.adminPath}/series?${query}`);
    expect(status, query).toBe(400);
  }
  await server.admin('DELETE', device.adminPath);
  expect((await server.admin('GET', `${device.adminPath}/series?schema=a`)).status).toBe(404);
});
