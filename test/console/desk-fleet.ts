import type { BroadcastDocument } from '../../src/contract/broadcast.ts';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { Receiver } from '../harness/features/receiver.ts';
import type { TestServer } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';
import { hostileTexts } from './console-fleet.ts';

/** Config of a server whose desk is looked at: slow enough that a broadcast is seen on its way. */
export const deskConfig = {
  activityFlushSeconds: 1,
  broadcastMailsPerSecondMax: 20,
  forwardHosts: 'localhost',
  forwardRetryMilliseconds: 200,
  mailboxMailsMax: 3,
} as const;

export interface DeskFleet {
  fleet: TestFleet;
  devices: readonly TestDevice[];
  /** Ended, with refusals for two reasons; the second device acknowledged it, the third rejected it. */
  doneId: string;
  /** Paused on its way. */
  pausedId: string;
  receiver: Receiver;
}

/** A fleet with work on its desk: broadcasts, forwarders that do well and ill, consumers, tokens, hostile names. */
export async function createDeskFleet(server: TestServer): Promise<DeskFleet> {
  const fleet = await createFleet(server, { name: 'Desk', active_seconds: 120 });
  const { fleetId } = fleet;
  const path = `/fleets/${fleetId}`;
  const devices = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      fleet.createDevice({
        device_id: `DESK${String(index).padStart(6, '0')}`,
        tags: [`row-${index % 3}`],
        ...(index === 2 && { name: 'Reception' }),
      }),
    ),
  );
  for (let mails = 0; mails < 3; mails += 1) await devices[0]?.sendMail();
  const put = async (body: object): Promise<BroadcastDocument> =>
    (await server.admin<BroadcastDocument>('POST', `${path}/broadcasts`, body)).body;
  const to = {
    devices: [...devices.slice(0, 8).map(({ deviceId }) => deviceId), 'NOBODY0001', 'NOBODY0002'],
  };
  const done = await put({ name: 'firmware_2_4', payload: { version: '2.4.0' }, to });
  const read = async (id: string): Promise<BroadcastDocument> =>
    (await server.admin<BroadcastDocument>('GET', `${path}/broadcasts/${id}`)).body;
  await until(async () => (await read(done.broadcast_id)).state === 'done');
  for (const [index, verb] of [
    [1, 'ack'],
    [2, 'reject'],
  ] as const) {
    const next = await devices[index]?.next();
    await devices[index]?.settle(verb, String(next?.headers.get('x-mail-id')));
  }
  const paused = await put({ name: 'set_clock', to: { all: true }, ttl_seconds: 3_600 });
  await until(async () => (await read(paused.broadcast_id)).queued > 0);
  await server.admin('POST', `${path}/broadcasts/${paused.broadcast_id}/pause`, {});
  const receiver = await Receiver.start();
  await declareReaders(server, path, receiver);
  await declareTokens(server, path, fleetId);
  for (let count = 0; count < 5; count += 1) {
    await devices[count]?.request('POST', '/v1/datapoint/reading', { celsius: count });
    await devices[count]?.heartbeat();
  }
  return { fleet, devices, doneId: done.broadcast_id, pausedId: paused.broadcast_id, receiver };
}

async function declareReaders(server: TestServer, path: string, receiver: Receiver): Promise<void> {
  const tls = { ca: receiver.ca };
  await server.admin('PUT', `${path}/forwarders/warehouse`, { type: 'webhook', url: receiver.url, tls });
  await server.admin('PUT', `${path}/forwarders/lost`, {
    type: 'webhook',
    url: 'https://localhost:9/nobody',
  });
  await server.admin('PUT', `${path}/consumers/billing`, { kinds: ['datapoint'] });
}

async function declareTokens(server: TestServer, path: string, fleetId: string): Promise<void> {
  await server.admin('POST', '/tokens', { name: 'dashboard', scopes: ['read'], fleet_id: fleetId });
  for (const name of [hostileTexts[0], hostileTexts[5]]) {
    await server.admin('POST', '/tokens', { name, scopes: ['read', 'mail', 'provision', 'admin'] });
  }
  await server.admin('POST', `${path}/claim-tokens`, {
    name: hostileTexts[1],
    devices_max: 100,
    tags: ['<b>new</b>'],
    id_pattern: 'PUMP[0-9]{6}',
  });
}
