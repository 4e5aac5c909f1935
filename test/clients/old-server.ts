import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';

/** A server from before `POST /v1/sync`, as it looks from outside: another one that does not show that route. */
export class OldServer implements AsyncDisposable {
  readonly #server: Server;
  /** Requests for the route that it does not have. */
  askedForSync = 0;

  private constructor(targetPort: number, ca: string) {
    const { TEST_CERT_FILE: cert = '', TEST_KEY_FILE: key = '' } = process.env;
    this.#server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (from, to) => {
      if (from.url === '/v1/sync') {
        this.askedForSync += 1;
        from.resume();
        to.writeHead(404, { 'Content-Type': 'application/json' }).end(
          '{"error":"not_found","msg":"No such route."}',
        );
        return;
      }
      const { method = '', url: path = '', headers } = from;
      const target = request({
        host: '127.0.0.1',
        port: targetPort,
        ca,
        method,
        path,
        headers,
        agent: false,
      });
      target.on('response', (answer) => {
        to.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(to);
      });
      target.on('error', () => to.destroy());
      to.on('close', () => target.destroy());
      from.pipe(target);
    });
  }

  static async open(targetPort: number, ca: string): Promise<OldServer> {
    const old = new OldServer(targetPort, ca);
    old.#server.listen(0, '127.0.0.1');
    await once(old.#server, 'listening');
    return old;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
