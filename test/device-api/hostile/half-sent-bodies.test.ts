/** Hostile trial: bodies that begin and do not end. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../../harness/devices/device.ts';
import { type RawAnswer, RawConnection, requestText } from '../../harness/devices/raw.ts';
import { shards, TestServer } from '../../harness/server/server.ts';
import { datapoint, datapointHead, errorOf, expectAlive, until } from '../../harness/server/vitals.ts';

const bodyMemoryBytesMax = 1_048_576;
/** More than fit into a worker, and as long as a body may be. */
const halfSentPerWorker = 24;
const text = `{"a":"${'x'.repeat(65_000)}"}`;

let server: TestServer;
let fleet: TestFleet;

beforeAll(async () => {
  server = await TestServer.start({
    bodyMemoryBytesMax,
    claimMemoryBytesMax: 262_144,
    claiming: true,
    deviceBytesPerSecondMax: 0,
  });
  fleet = await createFleet(server);
});

afterAll(() => server[Symbol.asyncDispose]());

const from = (localAddress: string): Promise<RawConnection> =>
  RawConnection.open(server, { localAddress } as object);

/** All but its last byte, on connections of their own. */
async function sendInPart(request: string, count: number, address: string): Promise<RawConnection[]> {
  const connections: RawConnection[] = [];
  for (let i = 0; i < count; i += 1) {
    const connection = await from(address);
    connection.write(request.slice(0, -1));
    connections.push(connection);
  }
  return connections;
}

/** Sends in two pieces, on one connection to each worker. */
async function inPieces(request: string, address: string): Promise<RawAnswer[]> {
  const connections = await Promise.all(Array.from({ length: shards }, () => from(address)));
  const half = request.length - 10_000;
  for (const connection of connections) connection.write(request.slice(0, half));
  for (const connection of connections) await connection.taken();
  for (const connection of connections) connection.write(request.slice(half));
  const answers = await Promise.all(connections.map((connection) => connection.answer()));
  for (const connection of connections) connection.destroy();
  return answers;
}

const statuses = (answers: readonly RawAnswer[]): number[] => answers.map(({ status }) => status);
const stored = Array<number>(shards).fill(201);
const isRefused = (connection: RawConnection): boolean => connection.text.includes(' 503 ');

describe('half-sent bodies', () => {
  it('of one device cost no other device its bodies, from the same address or another, nor its own short ones', async () => {
    const [attacker, other] = [await fleet.createDevice(), await fleet.createDevice()];
    const halves = await sendInPart(datapoint(attacker, text), halfSentPerWorker * shards, '127.0.0.1');
    await until(() => halves.some(isRefused));
    for (const address of ['127.0.0.1', '127.0.0.2']) {
      expect(statuses(await inPieces(datapoint(other, text), address))).toEqual(stored);
    }
    expect((await other.request('POST', '/v1/datapoint/reading', text)).status).toBe(201);
    expect((await attacker.request('POST', '/v1/datapoint/reading', { a: 1 })).status).toBe(201);
    for (const connection of halves) connection.destroy();
    await expectAlive(server, other);
  });

  it('the oldest has to go and is told why, and the newest are taken once they are complete', async () => {
    const device = await fleet.createDevice();
    const halves = await sendInPart(datapoint(device, text), halfSentPerWorker * shards, '127.0.0.1');
    await until(() => halves.filter(isRefused).length >= (halfSentPerWorker / 2) * shards);
    const answer = await (halves[0] as RawConnection).answer();
    expect([answer.status, errorOf(answer)]).toEqual([503, 'unavailable']);
    expect(answer.body).toContain('bodyMemoryBytesMax');
    const newest = halves.slice(-shards);
    for (const connection of newest) connection.write('}');
    expect(statuses(await Promise.all(newest.map((connection) => connection.answer())))).toEqual(stored);
    for (const connection of halves) connection.destroy();
    await expectAlive(server, device);
  });

  it('of many devices at one address cost no other address its bodies', async () => {
    const devices: TestDevice[] = [];
    for (let i = 0; i < halfSentPerWorker * shards; i += 1) devices.push(await fleet.createDevice());
    const halves: RawConnection[] = [];
    for (const device of devices) halves.push(...(await sendInPart(datapoint(device, text), 1, '127.0.0.1')));
    const [other] = devices as [TestDevice];
    expect(statuses(await inPieces(datapoint(other, text), '127.0.0.2'))).toEqual(stored);
    for (const connection of halves) connection.destroy();
    await expectAlive(server, other);
  });

  it('of claims, which anybody may begin, cost no device its bodies and no address its claim', async () => {
    const path = `/fleets/${fleet.fleetId}/claim-tokens`;
    const made = await server.admin<{ claim_token: string }>('POST', path, { devices_max: 100 });
    const body = JSON.stringify({ fleet_id: fleet.fleetId, claim_token: made.body.claim_token });
    const claimOf = (json: string): string => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': String(json.length) };
      return requestText('POST', '/v1/claim', headers, json);
    };
    const padded = claimOf(body.padEnd(4_096));
    const halves = await sendInPart(padded, 80 * shards, '127.0.0.1');
    await until(() => halves.some(isRefused));
    const refused = await (halves.find(isRefused) as RawConnection).answer();
    expect(refused.body).toContain('claimMemoryBytesMax');
    const device = await fleet.createDevice();
    expect(statuses(await inPieces(datapoint(device, text), '127.0.0.1'))).toEqual(stored);
    const piecewise = await from('127.0.0.2');
    piecewise.write(padded.slice(0, 200));
    await piecewise.taken();
    piecewise.write(padded.slice(200));
    expect((await piecewise.answer()).status).toBe(201);
    const tooLarge = await from('127.0.0.2');
    tooLarge.write(claimOf(body.padEnd(4_097)));
    const answer = await tooLarge.answer();
    expect([answer.status, errorOf(answer)]).toEqual([413, 'request_too_large']);
    expect(answer.body).toContain('larger than 4096 bytes');
    for (const connection of [...halves, piecewise, tooLarge]) connection.destroy();
    await expectAlive(server, device);
  });

  it('that come in pieces of a byte are put together', async () => {
    const device = await fleet.createDevice();
    const connection = await from('127.0.0.1');
    const body = `{"a":"${'x'.repeat(2_000)}"}`;
    connection.write(datapointHead(device, { 'Content-Length': String(body.length) }));
    await connection.writeBytewise(body);
    expect((await connection.answer()).status).toBe(201);
    connection.destroy();
  });
});
