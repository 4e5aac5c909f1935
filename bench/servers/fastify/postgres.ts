import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { certificate } from '../certificate.ts';
import { generateDevices } from '../devices.ts';
import { freePort } from '../free-port.ts';
import { Peer } from '../peer.ts';
import { ServerProcess, startScript } from '../server-process.ts';
import type { Credentials, Subject } from '../subject.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { untilReady } from '../until-ready.ts';
import type { AppOptions } from './app.ts';

const versionsFolder = '/usr/lib/postgresql';
/** The newest version's programs: Debian keeps them out of the PATH. */
export function postgresPrograms(): string | undefined {
  if (!existsSync(versionsFolder)) return undefined;
  const versions = readdirSync(versionsFolder).sort((a, b) => Number(b) - Number(a));
  return versions
    .map((version) => join(versionsFolder, version, 'bin'))
    .find((folder) => existsSync(join(folder, 'postgres')));
}

/** PostgreSQL does not run as root: then it runs as the user that Debian's package makes for it. */
function userToRunAs(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (flag: string): number => Number(spawnSync('id', [flag, 'postgres']).stdout.toString());
  return { uid: idOf('-u'), gid: idOf('-g') };
}

function clientOf(socketFolder: string): pg.Client {
  return new pg.Client({ host: socketFolder, user: 'postgres', database: 'postgres' });
}

/** It takes connections before, and then refuses to talk. */
async function answersQueries(socketFolder: string): Promise<boolean> {
  const client = clientOf(socketFolder);
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}

/** fsync and synchronous_commit are on unless turned off. The socket is in the data folder. */
async function startPostgres(programs: string, data: string): Promise<ServerProcess> {
  const user = userToRunAs();
  mkdirSync(data, { mode: 0o700 });
  if (user) chownSync(data, user.uid, user.gid);
  const initdb = spawnSync(join(programs, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust'], {
    ...user,
    cwd: data,
  });
  if (initdb.status !== 0) throw new Error(`PostgreSQL's initdb failed: ${initdb.stderr}`);
  const args = ['-D', data, '-k', data, '-c', 'listen_addresses='];
  const server = await ServerProcess.start(join(programs, 'postgres'), args, user && { user });
  await untilReady(server, () => answersQueries(data));
  return server;
}

const tables = `
  CREATE TABLE devices (device text PRIMARY KEY, digest bytea NOT NULL, seen timestamptz);
  CREATE TABLE mails (device text, id uuid, payload text NOT NULL, PRIMARY KEY (device, id));
  CREATE TABLE datapoints (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    device text NOT NULL,
    schema text NOT NULL,
    accepted timestamptz NOT NULL DEFAULT now(),
    payload text NOT NULL
  );`;

async function load(socketFolder: string, devices: readonly Credentials[]): Promise<void> {
  const client = clientOf(socketFolder);
  await client.connect();
  await client.query(tables);
  await client.query('INSERT INTO devices (device, digest) SELECT * FROM unnest($1::text[], $2::bytea[])', [
    devices.map(({ fleetId, deviceId }) => fleetId + deviceId),
    devices.map(({ secret }) => hash('sha256', secret, 'buffer')),
  ]);
  await client.query('ANALYZE');
  await client.end();
}

/** One process of the app, as with Redis. */
export const fastifyPostgres: Subject = {
  name: 'Fastify + PostgreSQL',
  durability: 'synchronous commit',
  missing: () =>
    postgresPrograms() === undefined
      ? `There is no PostgreSQL in ${versionsFolder}: run bench/install-peers.sh.`
      : undefined,
  async start({ devices: count, tls }) {
    const folder = temporaryFolder();
    const socket = join(folder, 'postgres');
    const postgres = await startPostgres(postgresPrograms() ?? '', socket);
    const devices = generateDevices(count);
    await load(socket, devices);
    const options: AppOptions = { port: await freePort(), tls: tls ?? (await certificate()), socket };
    const app = await startScript(new URL('postgres-process.ts', import.meta.url), options);
    await app.firstLine;
    return new Peer(options.port, options.tls, devices, [postgres, app], folder);
  },
};
