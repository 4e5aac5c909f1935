import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { type RawAnswer, RawConnection, requestText } from '../harness/devices/raw.ts';
import { expectError, valuesOf } from '../harness/devices/routes.ts';
import { TestServer } from '../harness/server/server.ts';
import { datapointHead, until } from '../harness/server/vitals.ts';

/** D6 and the rate limits of D7, over however many workers the connections land on. */
let server: TestServer;
let fleet: TestFleet;

beforeAll(async () => {
  server = await TestServer.start({ deviceRequestsPerSecondMax: 20 });
  fleet = await createFleet(server);
});

afterAll(() => server[Symbol.asyncDispose]());

const wrongSecret = `FOS-${'X'.repeat(32)}`;

/** A heartbeat on a connection of its own, from an address of loopback. */
async function beat(
  { credentials }: { credentials: object },
  change: Record<string, string> = {},
  { localAddress = '127.0.0.1', on = server } = {},
): Promise<RawAnswer> {
  const connection = await RawConnection.open(on, { localAddress } as object);
  connection.write(requestText('POST', '/v1/heartbeat', { ...credentials, ...change }));
  const answer = await connection.answer();
  connection.destroy();
  return answer;
}

async function statusesOf(count: number, ask: () => Promise<RawAnswer>): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i += 1) statuses.push((await ask()).status);
  return statuses;
}

function retryAfter(answer: RawAnswer): number {
  const [value = ''] = valuesOf(answer, 'retry-after');
  expect(value).toMatch(/^\d+$/);
  return Number(value);
}

async function lockOut(device: TestDevice): Promise<void> {
  const wrong = { 'X-Device-Secret': wrongSecret };
  expect(await statusesOf(10, () => beat(device, wrong))).toEqual(Array(10).fill(401));
}

describe('D6: after 10 answers 401 in a minute', () => {
  it('an address is locked out from the device, whatever the secret, and every other address is not', async () => {
    const device = await fleet.createDevice();
    expect((await beat(device)).status).toBe(201);
    await lockOut(device);
    for (const change of [{ 'X-Device-Secret': wrongSecret }, {}]) {
      const answer = await beat(device, change);
      expectError(answer, 429, 'rate_limited');
      expect(answer.body).toContain('unauthorizedMax');
      expect(retryAfter(answer)).toBeGreaterThan(50);
      expect(retryAfter(answer)).toBeLessThanOrEqual(60);
    }
    const statuses = await statusesOf(9, () => beat(device, {}, { localAddress: '127.0.0.2' }));
    expect(statuses).toEqual(Array(9).fill(201));
    expect((await beat(device)).status).toBe(429);
  });

  it('another device of the same address is let in, and another fleet’s of the same id', async () => {
    const [device, neighbour] = [await fleet.createDevice(), await fleet.createDevice()];
    const namesake = await (await createFleet(server)).createDevice({ device_id: device.deviceId });
    await lockOut(device);
    expect((await beat(device)).status).toBe(429);
    expect([(await beat(neighbour)).status, (await beat(namesake)).status]).toEqual([201, 201]);
  });

  it('so it is for a device or a fleet that does not exist, and for a device that is disabled', async () => {
    const disabled = await fleet.createDevice();
    await server.admin('PATCH', disabled.adminPath, { enabled: false });
    const device = await fleet.createDevice();
    for (const change of [{ 'X-Device-ID': 'NOSUCHDEVI' }, { 'X-Fleet-ID': 'NOSUCHFL' }]) {
      const statuses = await statusesOf(11, () => beat(device, change));
      expect(statuses).toEqual([...Array(10).fill(401), 429]);
    }
    expect(await statusesOf(11, () => beat(disabled))).toEqual([...Array(10).fill(401), 429]);
  });

  it('malformed credentials are 400 and count for nothing', async () => {
    const device = await fleet.createDevice();
    const malformed = { 'X-Device-Secret': 'FOS-short' };
    expect(await statusesOf(15, () => beat(device, malformed))).toEqual(Array(15).fill(400));
    expect((await beat(device)).status).toBe(201);
  });
});

/** Sends heartbeats on several connections until one is refused; answers how many passed, and the refusal. */
async function flood(device: TestDevice, connections: number) {
  const agents = Array.from({ length: connections }, () => oneConnection(device.server));
  let passed = 0;
  for (let turn = 0; ; turn += 1) {
    const agent = agents[turn % connections];
    const answer = await device.request('POST', '/v1/heartbeat', undefined, {}, agent);
    if (answer.status !== 201) {
      await Promise.all(agents.map((one) => one.destroy()));
      return { passed, answer };
    }
    passed += 1;
  }
}

describe('D7: requests of one address without valid credentials', () => {
  const key = 'anonymousRequestsPerSecondMax';
  let limited: TestServer;
  let device: TestDevice;

  beforeAll(async () => {
    limited = await TestServer.start({ [key]: 6, unauthorizedMax: 0 });
    device = await (await createFleet(limited)).createDevice();
  });

  afterAll(() => limited[Symbol.asyncDispose]());

  /** Asks on new connections until it is refused; answers how often it was not. */
  async function passed(localAddress: string, ask: (connection: RawConnection) => void): Promise<number> {
    for (let count = 0; ; count += 1) {
      const connection = await RawConnection.open(limited, { localAddress } as object);
      ask(connection);
      const answer = await connection.answer();
      connection.destroy();
      if (answer.status !== 429) continue;
      expectError(answer, 429, 'rate_limited');
      expect(answer.body).toContain(`(${key})`);
      expect(retryAfter(answer)).toBe(1);
      return count;
    }
  }

  const credentials = (): Record<string, string> => ({ ...device.credentials });

  it.each([
    ['GET /', 2, () => requestText('GET', '/', {})],
    ['an unknown path', 3, () => requestText('GET', '/nowhere', {})],
    ['no credentials', 4, () => requestText('POST', '/v1/heartbeat', {})],
    [
      'wrong ones',
      5,
      () => requestText('POST', '/v1/heartbeat', { ...credentials(), 'X-Device-Secret': wrongSecret }),
    ],
  ])('beyond the limit are answered 429, but not who has some: %s', async (_, address, request) => {
    const from = `127.0.0.${address}`;
    // Two seconds' worth at once.
    expect(await passed(from, (connection) => connection.write(request()))).toBeGreaterThanOrEqual(12);
    const statuses = await statusesOf(10, () => beat(device, {}, { localAddress: from, on: limited }));
    expect(statuses).toEqual(Array(10).fill(201));
  });

  it('a client that pipelines behind a 429 is closed, and another address is answered', async () => {
    const flooding = await RawConnection.open(limited);
    flooding.write(requestText('GET', '/', {}).repeat(200));
    await flooding.closed();
    const elsewhere = await RawConnection.open(limited, { localAddress: '127.0.0.9' } as object);
    elsewhere.write(requestText('GET', '/', {}));
    expect((await elsewhere.answer()).status).toBe(200);
    elsewhere.destroy();
  });
});

describe('D7: rate limits', () => {
  it('a device beyond deviceRequestsPerSecondMax gets 429, over all its connections together', async () => {
    const device = await fleet.createDevice();
    const { passed, answer } = await flood(device, 6);
    expectError(answer, 429, 'rate_limited');
    expect(answer.json.msg).toContain('(deviceRequestsPerSecondMax)');
    expect(answer.headers.get('retry-after')).toBe('1');
    // Two seconds' worth at once, and what came due meanwhile.
    expect(passed).toBeGreaterThanOrEqual(40);
    await until(async () => (await device.heartbeat()).status === 201);
    expect((await (await fleet.createDevice()).heartbeat()).status).toBe(201);
  });

  it('it comes after credentials and before content type, body and schema', async () => {
    const slow = await createFleet(server, { device_requests_per_second_max: 1 });
    const device = await slow.createDevice();
    const text = { 'Content-Type': 'text/plain' };
    await until(async () => {
      await flood(device, 1);
      const sent = await device.request('POST', '/v1/datapoint/unknown', 'no JSON', text);
      return sent.status === 429;
    });
    const wrong = { 'X-Device-Secret': wrongSecret };
    expect((await device.request('POST', '/v1/datapoint/unknown', 'x', wrong)).status).toBe(401);
  });

  it('a fleet has its own limits, of all its devices and of each, which null takes back', async () => {
    const limits = { requests_per_second_max: 5, device_requests_per_second_max: 0 };
    const limited = await createFleet(server, limits);
    const [device, other] = [await limited.createDevice(), await limited.createDevice()];
    const { passed, answer } = await flood(device, 3);
    expect(passed).toBeGreaterThanOrEqual(10);
    expectError(answer, 429, 'rate_limited');
    expect(answer.json.msg).toContain('(fleetRequestsPerSecondMax)');
    await until(async () => {
      await flood(device, 1);
      return (await other.heartbeat()).status === 429;
    });
    const path = `/fleets/${limited.fleetId}`;
    expect((await server.admin('GET', path)).body).toMatchObject(limits);
    const back = { requests_per_second_max: null, device_requests_per_second_max: null };
    expect((await server.admin('PATCH', path, back)).body).toMatchObject({
      requests_per_second_max: 0,
      device_requests_per_second_max: 20,
    });
    expect((await other.heartbeat()).status).toBe(201);
  });

  it.each([
    ['declared', {}],
    ['chunked', { 'Transfer-Encoding': 'chunked' }],
  ])('a device beyond deviceBytesPerSecondMax gets 429: bodies whose length is %s', async (_, framing) => {
    const limited = await createFleet(server, {
      device_bytes_per_second_max: 65_536,
      device_requests_per_second_max: 0,
    });
    const [device, other] = [await limited.createDevice(), await limited.createDevice()];
    const body = `{"a":"${'x'.repeat(60_000)}"}`;
    const framed =
      'Transfer-Encoding' in framing ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
    const length = framed === body ? { 'Content-Length': String(body.length) } : framing;
    /** Sends on a connection of its own: the acceptor deals them to all workers. */
    const send = async (one: TestDevice): Promise<RawAnswer> => {
      const connection = await RawConnection.open(server);
      connection.write(datapointHead(one, length) + framed);
      const answer = await connection.answer();
      connection.destroy();
      return answer;
    };
    let [passed, answer] = [0, await send(device)];
    for (; answer.status === 201; passed += 1) answer = await send(device);
    expectError(answer, 429, 'rate_limited');
    expect(answer.body).toContain('(deviceBytesPerSecondMax)');
    expect(retryAfter(answer)).toBe(1);
    expect(passed).toBeGreaterThanOrEqual(2);
    expect([(await device.heartbeat()).status, (await send(other)).status]).toEqual([201, 201]);
    await until(async () => (await send(device)).status === 201);
  });

  it('a body that is larger than deviceBytesPerSecondMax is taken, if none came before it', async () => {
    const limited = await createFleet(server, { device_bytes_per_second_max: 1_000 });
    const device = await limited.createDevice();
    const body = { a: 'x'.repeat(60_000) };
    expect((await device.request('POST', '/v1/datapoint/reading', body)).status).toBe(201);
    const answer = await device.request('POST', '/v1/datapoint/reading', { a: 1 });
    expectError(answer, 429, 'rate_limited');
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(50);
  });
});
