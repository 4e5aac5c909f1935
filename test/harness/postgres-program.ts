import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Of Debian's package, the newest; others have them in PATH. */
const debian = '/usr/lib/postgresql';

/** The account of the system that PostgreSQL runs as, and the role that owns a cluster. */
export const owner = 'postgres';

/** One of PostgreSQL's programs. */
export function program(name: string): string {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.length === 0 ? name : join(debian, versions[0] ?? '', 'bin', name);
}

/** PostgreSQL refuses to run as root: there it runs as the user that its package makes. */
export function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(spawnSync('id', [flag, owner]).stdout));
  if (!uid || !gid) throw new Error(`there is no user ${owner}: install PostgreSQL from Debian's packages`);
  return { uid, gid };
}

/** Runs one of the programs to its end, as that account. @throws where it fails */
export function runProgram(name: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program(name), args, { ...account(), cwd: '/', encoding: 'utf8' });
  if (status !== 0) throw new Error(`${name} failed: ${stderr}`);
}
