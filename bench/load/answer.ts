import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';
import type { RunningServer } from '../servers/subject.ts';

const timeoutMs = 30_000;

/** Sends one prebuilt request on a connection of its own; answers the status, once the headers are there. */
export function statusOf(server: RunningServer, request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname: host, port } = new URL(server.url);
    const socket = connect({ host, port: Number(port), ca: readFileSync(server.certFile) });
    let received = '';
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`${server.url} did not answer in time`)));
    socket.on('secureConnect', () => socket.write(request, 'latin1'));
    socket.setEncoding('latin1').on('data', (text) => {
      received += text;
      if (received.includes('\r\n\r\n')) socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(received)?.[1]);
      if (Number.isNaN(status)) reject(new Error(`${server.url} closed without an answer`));
      else resolve(status);
    });
  });
}
