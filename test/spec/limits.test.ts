import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, oneConnection, type TestDevice, type TestFleet } from '../harness/device.ts';
import { type RawAnswer, RawConnection, requestText } from '../harness/raw.ts';
import { expectError, valuesOf } from '../harness/routes.ts';
import { TestServer } from '../harness/server.ts';
import { until } from '../robustness/vitals.ts';

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

it('D6: a lockout ends after its time; D8: strictStatuses answers 500', async () => {
  const config = { unauthorizedWindowSeconds: 3, lockoutSecondsMax: 3, strictStatuses: true };
  await using short = await TestServer.start(config);
  const device = await (await createFleet(short)).createDevice();
  const wrong = { 'X-Device-Secret': wrongSecret };
  let answer = await beat(device, wrong, { on: short });
  // 10 in 3 seconds may take two windows on a slow machine.
  while (answer.status === 401) answer = await beat(device, wrong, { on: short });
  expectError(answer, 500, 'rate_limited');
  expect(retryAfter(answer)).toBeLessThanOrEqual(3);
  await until(async () => (await beat(device, {}, { on: short })).status === 201);
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
});
