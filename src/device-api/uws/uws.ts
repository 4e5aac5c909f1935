import { createRequire } from 'node:module';
import { type TlsFiles, tlsCiphers } from '../../core/config/tls.ts';
import { OperatorError } from '../../core/errors.ts';
import type { App, Uws } from './uws-api.ts';
import { explainMissing, glibc, installedBinaries } from './uws-installation.ts';

export type { App, AppDescriptor, HttpRequest, HttpResponse, ListenSocket } from './uws-api.ts';

/** Loads the newest binary that loads: only trying tells whether the C library has all its symbols. */
function load(): Uws {
  const require = createRequire(import.meta.url);
  let failure: string | undefined;
  for (const { path } of installedBinaries()) {
    try {
      return require(path) as Uws;
    } catch (error) {
      failure = (error as Error).message.trim();
    }
  }
  const platform = `${process.platform}-${process.arch}`;
  throw new OperatorError(explainMissing(platform, process.versions.node, glibc(), failure));
}

export const uws: Uws = load();

/** Listen option without which any number of servers may listen on one port. */
export const listenExclusively = uws.LIBUS_LISTEN_EXCLUSIVE_PORT;

export function createApp({ certFile, keyFile }: TlsFiles): App {
  return uws.SSLApp({ cert_file_name: certFile, key_file_name: keyFile, ssl_ciphers: tlsCiphers.join(':') });
}
