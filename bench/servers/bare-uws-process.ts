import type { TlsFiles } from '../../src/core/config/tls.ts';
import { createApp } from '../../src/device-api/uws/uws.ts';

const { port, tls } = JSON.parse(process.argv[2] ?? '') as { port: number; tls: TlsFiles };

/** The head of an answer in one text, as Fleetpost sends it: fewer calls into the library. */
const head =
  '201 Created\r\nCache-Control: no-store\r\nConnection: keep-alive\r\nKeep-Alive: timeout=8\r\nContent-Type: application/json\r\nX-Messages-Available: false';

// Several processes share the port: the library listens with SO_REUSEPORT.
createApp({ certFile: tls.certFile, keyFile: tls.keyFile })
  .any('/*', (response) => {
    response.writeStatus(head);
    response.end('{"ok":true}');
  })
  .listen('127.0.0.1', port, (socket) => {
    if (socket === false) throw new Error(`port ${port} cannot be listened on`);
    console.log('ready');
  });
