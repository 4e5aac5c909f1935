import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../harness/server/server.ts';

const client = fileURLToPath(new URL('../../clients/c', import.meta.url));
const libraries = {
  openssl: ['-lssl', '-lcrypto'],
  mbedtls: ['-lmbedtls', '-lmbedx509', '-lmbedcrypto'],
} as const;
const strict = ['-std=c99', '-pedantic', '-Wall', '-Wextra', '-Werror', '-D_POSIX_C_SOURCE=200809L'];

type Sanitizers = 'address,undefined' | 'undefined';

/** Compiles a program of this folder with the C client, sanitizers and all warnings, and returns its file. */
export function buildWithC(
  program: string,
  tls?: keyof typeof libraries,
  sanitizers: Sanitizers = 'address,undefined',
): string {
  const core = readdirSync(join(client, 'src')).filter((name) => name.endsWith('.c'));
  const ports = tls === undefined ? [] : ['posix.c', `${tls}.c`];
  const sources = [
    ...core.map((name) => join(client, 'src', name)),
    ...ports.map((name) => join(client, 'ports', name)),
    fileURLToPath(new URL(program, import.meta.url)),
  ];
  const file = join(temporaryFolder(), 'program');
  const folders = [`-I${join(client, 'src')}`, `-I${join(client, 'ports')}`];
  const link = tls === undefined ? [] : libraries[tls];
  const checks = [`-fsanitize=${sanitizers}`, '-fno-sanitize-recover=all', '-static-libubsan'];
  execFileSync('cc', [...strict, ...checks, '-O1', '-g', ...folders, ...sources, ...link, '-o', file]);
  return file;
}

/** The command of the driver. Where libfaketime is preloaded it runs without ASan: these two hang each other at start. */
export function cDriver(tls: keyof typeof libraries): readonly string[] {
  const file = buildWithC('c-driver.c', tls);
  const fileWithoutAsan = buildWithC('c-driver.c', tls, 'undefined');
  const choice = `if [ -n "$FAKETIME_TIMESTAMP_FILE" ]; then exec ${fileWithoutAsan}; else exec ${file}; fi`;
  return ['sh', '-c', choice];
}
