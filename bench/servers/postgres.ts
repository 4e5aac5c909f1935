import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { ServerProcess } from './server-process.ts';
import { untilReady } from './until-ready.ts';

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

/** Promise of an answer that waits for a commit there: fsync and synchronous_commit are on. */
export const synchronousCommit = 'synchronous commit';

/** URL of the server whose socket is in that folder. */
export function urlOf(socketFolder: string): string {
  return `postgres://postgres@/postgres?host=${encodeURIComponent(socketFolder)}`;
}

/** Client for the server whose socket is in that folder. */
export function clientOf(socketFolder: string): pg.Client {
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

/** Names what is missing on this machine, and how to get it. */
export function missingPostgres(): string | undefined {
  if (postgresPrograms() !== undefined) return undefined;
  return `There is no PostgreSQL in ${versionsFolder}: run bench/install-peers.sh.`;
}

/** fsync and synchronous_commit are on unless turned off. The socket is in the data folder. */
export async function startPostgres(data: string): Promise<ServerProcess> {
  const programs = postgresPrograms() ?? '';
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
