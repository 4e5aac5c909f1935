import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, release, tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
// So that it is loaded, which says which of the packages fits this machine.
import '../src/device-api/uws/uws.ts';
import { installedProgram } from '../test/harness/postgres/postgres-program.ts';

const require = createRequire(import.meta.url);
/** The version of an installed package. */
function versionOf(folder: string): string {
  const manifest = readFileSync(new URL(`../node_modules/${folder}/package.json`, import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Version of the binary that is loaded. */
function uwsVersion(): string | undefined {
  const binary = Object.keys(require.cache).find((file) => /@uwsjs.*\.node$/.test(file));
  if (binary === undefined) return undefined;
  const manifest = readFileSync(join(dirname(binary), 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Version that a program prints, in numbers; undefined where it is not installed. */
function programVersion(file: string, argument: string): string | undefined {
  const { stdout, stderr, error } = spawnSync(file, [argument], { encoding: 'utf8' });
  return error ? undefined : /\d+\.\d+[\w.-]*/.exec(stdout + stderr)?.[0];
}

/** File system of the folder that everything is stored in while it is measured. */
export function dataFilesystem(): string {
  const { stdout } = spawnSync('df', ['--output=fstype,source', tmpdir()], { encoding: 'utf8' });
  return stdout?.trim().split('\n').at(-1)?.replace(/\s+/, ' on ') ?? 'unknown';
}

/** Describes the machine of the run, as the report prints it. */
export function describeMachine(): Record<string, string> {
  const facts: Record<string, string | undefined> = {
    CPU: `${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores`,
    Memory: `${(totalmem() / 2 ** 30).toFixed(1)} GiB`,
    Kernel: `Linux ${release()}`,
    'Data on': `${tmpdir()}, ${dataFilesystem()}`,
    Node: process.versions.node,
    'OpenSSL of Node': process.versions.openssl,
    'uWebSockets.js': uwsVersion(),
    lmdb: versionOf('lmdb'),
    Fastify: versionOf('fastify'),
    nginx: programVersion('nginx', '-v'),
    wrk: programVersion('wrk', '-v'),
    Redis: programVersion('redis-server', '--version'),
    PostgreSQL: programVersion(installedProgram('postgres'), '--version'),
  };
  const present = Object.entries(facts).filter((fact): fact is [string, string] => fact[1] !== undefined);
  return Object.fromEntries(present);
}
