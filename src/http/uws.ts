import type * as UwsModule from 'uWebSockets.js';
import { createRequire } from 'node:module';
import { OperatorError } from '../core/errors.ts';

export type { HttpRequest, HttpResponse } from 'uWebSockets.js';

/** Opaque and sent between threads as it is; the older package has it, its typings do not. */
export type AppDescriptor = UwsModule.AppDescriptor;
export type App = UwsModule.TemplatedApp;
export type ListenSocket = UwsModule.us_listen_socket;
type Uws = typeof UwsModule;

/** Newest first. Each package carries binaries for some Node versions and a C library of some age. */
const packages = ['uWebSockets.js', 'uWebSockets.js-20.51'];

function load(): Uws {
  const require = createRequire(import.meta.url);
  const reasons: string[] = [];
  for (const name of packages) {
    try {
      return require(name) as Uws;
    } catch (error) {
      reasons.push(`${name}: ${(error as Error).message.trim().split('\n').at(-1)}`);
    }
  }
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  throw new OperatorError(
    `No uWebSockets.js binary loads here: Node ${process.versions.node} on ${process.platform}-${process.arch}, ` +
      `C library ${report?.header?.glibcVersionRuntime ?? 'unknown'} (glibc 2.27 or newer is needed). ${reasons.join(' | ')}`,
  );
}

export const uws: Uws = load();

/** An option of `listen` that the typings leave out. */
export const listenExclusively = (uws as unknown as { LIBUS_LISTEN_EXCLUSIVE_PORT: number })
  .LIBUS_LISTEN_EXCLUSIVE_PORT;

/** TLS 1.3 has its own suites; of 1.2's only those with forward secrecy and authenticated encryption. */
const ciphers = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

export interface TlsFiles {
  certFile: string;
  keyFile: string;
}

export function createApp({ certFile, keyFile }: TlsFiles): App {
  return uws.SSLApp({ cert_file_name: certFile, key_file_name: keyFile, ssl_ciphers: ciphers });
}
