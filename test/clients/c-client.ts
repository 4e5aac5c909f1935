import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../harness/server.ts';

const client = fileURLToPath(new URL('../../clients/c', import.meta.url));
const libraries = {
  openssl: ['-lssl', '-lcrypto'],
  mbedtls: ['-lmbedtls', '-lmbedx509', '-lmbedcrypto'],
} as const;
const strict = ['-std=c99', '-pedantic', '-Wall', '-Wextra', '-Werror', '-D_POSIX_C_SOURCE=200809L'];
// The sanitizers are linked in, since libfaketime is preloaded and would come before theirs.
const sanitizers = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-static-libasan', '-static-libubsan'];

/** Compiles a program of this folder with the C client, sanitizers and all warnings, and returns its file. */
export function buildWithC(program: string, tls?: keyof typeof libraries): string {
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
  execFileSync('cc', [...strict, ...sanitizers, '-O1', '-g', ...folders, ...sources, ...link, '-o', file]);
  return file;
}
