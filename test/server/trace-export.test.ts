import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createFleet, TestDevice } from '../harness/devices/device.ts';
import { TestServer } from '../harness/server/server.ts';

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: { stringValue?: string; intValue?: string } }[];
}

it('sampled requests become spans that an OTLP receiver is sent; others, and unsound ones, do not', async () => {
  const received: Span[] = [];
  let status = 200;
  const receiver = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(text) as {
        resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
      };
      expect([request.method, request.url]).toEqual(['POST', '/v1/traces']);
      if (status === 200) {
        for (const { scopeSpans } of resourceSpans)
          for (const { spans } of scopeSpans) received.push(...spans);
      }
      response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const traceUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/v1/traces`;
  const server = await TestServer.start({ traceUrl });
  const device = await (await createFleet(server)).createDevice();
  const [traceId, parent] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  const traceparent = `00-${traceId}-${parent}-01`;
  for (const other of [
    `00-${traceId}-${parent}-00`,
    `00-${'0'.repeat(32)}-${parent}-01`,
    `ff-${traceId}-${parent}-01`,
    'nonsense',
  ]) {
    await device.request('POST', '/v1/heartbeat', undefined, { traceparent: other });
  }
  // Nor do those of strangers, who could fill the buffer.
  await new TestDevice(server, device.fleetId, device.deviceId, `FOS-${'W'.repeat(32)}`).request(
    'POST',
    '/v1/heartbeat',
    undefined,
    { traceparent },
  );
  const { admin_url } = server.report;
  await fetch(`${admin_url}/metrics`, { headers: { traceparent } });
  await fetch(`${admin_url}/admin/v1/fleets`, { headers: { authorization: 'Bearer nobody', traceparent } });
  await device.request('POST', '/v1/datapoint/reading', '{"n":1}', { traceparent });
  await device.request('POST', '/v1/heartbeat', undefined, { traceparent });
  const fleets = `${server.report.admin_url}/admin/v1/fleets/${device.fleetId}`;
  await fetch(fleets, { headers: { authorization: `Bearer ${server.token}`, traceparent } });
  await expect.poll(() => received.length).toBe(4);

  expect(new Set(received.map((span) => span.traceId))).toEqual(new Set([traceId]));
  const spanOf = (name: string): Span => received.find((span) => span.name === name) as Span;
  const datapoint = spanOf('POST /v1/datapoint/:schema_name');
  expect(datapoint).toMatchObject({ parentSpanId: parent, kind: 2 });
  expect(spanOf('shard write')).toMatchObject({ parentSpanId: datapoint.spanId, kind: 1 });
  expect(BigInt(datapoint.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(datapoint.startTimeUnixNano));
  const values = (span: Span) =>
    Object.fromEntries(
      span.attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
    );
  expect(values(spanOf('POST /v1/heartbeat'))).toEqual({
    'http.request.method': 'POST',
    'http.route': '/v1/heartbeat',
    'http.response.status_code': 201,
    'fleetpost.fleet': device.fleetId,
    'fleetpost.device': device.deviceId,
  });
  expect(values(spanOf('GET /admin/v1/fleets/:fleet_id'))).toMatchObject({
    'fleetpost.fleet': device.fleetId,
    'http.response.status_code': 200,
  });

  // A receiver that fails costs spans and nothing else; one line says so.
  status = 503;
  await device.request('POST', '/v1/heartbeat', undefined, { traceparent });
  const metrics = async (): Promise<string> => (await fetch(`${server.report.admin_url}/metrics`)).text();
  await expect.poll(metrics).toContain('fleetpost_spans_dropped_total 1');
  expect(await metrics()).toContain('fleetpost_spans_exported_total 4');
  expect(await server.stop()).toBe(0);
  expect(server.stderr.trim().split('\n')).toHaveLength(1);
  expect(server.stderr).toContain('span export to traceUrl failed');
  receiver.close();
});
