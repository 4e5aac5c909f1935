import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { certificate } from '../certificate.ts';
import { generateDevices } from '../devices.ts';
import { Peer } from '../peer.ts';
import { ServerProcess, startScript } from '../server-process.ts';
import type { Credentials, Subject } from '../subject.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { accepts, untilReady } from '../until-ready.ts';
import type { AppOptions } from './app.ts';
import { deviceKey } from './redis-keys.ts';

async function startRedis(folder: string, socket: string): Promise<ServerProcess> {
  const settings = {
    dir: folder,
    port: '0',
    unixsocket: socket,
    appendonly: 'yes',
    appendfsync: 'always',
    // No snapshots beside the log.
    save: '',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const server = await ServerProcess.start('redis-server', args);
  await untilReady(server, () => accepts({ path: socket }));
  return server;
}

async function load(socket: string, devices: readonly Credentials[]): Promise<void> {
  const redis = new Redis(socket);
  const pipeline = redis.pipeline();
  for (const { fleetId, deviceId, secret } of devices) {
    pipeline.hset(deviceKey(fleetId + deviceId), 'digest', hash('sha256', secret, 'buffer'));
  }
  await pipeline.exec();
  await redis.quit();
}

/** One process, for what counts is CPU per request: more of them would not make it less. */
export const fastifyRedis: Subject = {
  name: 'Fastify + Redis',
  durability: 'appendfsync always',
  missing: () =>
    spawnSync('redis-server', ['--version']).error === undefined
      ? undefined
      : 'redis-server is not installed: run bench/install-peers.sh.',
  async start({ devices: count, tls }) {
    const folder = temporaryFolder();
    const socket = join(folder, 'redis.sock');
    const redis = await startRedis(folder, socket);
    const devices = generateDevices(count);
    await load(socket, devices);
    const options: AppOptions = { port: await freePort(), tls: tls ?? (await certificate()), socket };
    const app = await startScript(new URL('redis-process.ts', import.meta.url), options);
    await app.firstLine;
    return new Peer({ ...options, devices, processes: [redis, app], database: redis, folder });
  },
};
