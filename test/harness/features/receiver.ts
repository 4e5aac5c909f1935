import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { Webhook } from 'standardwebhooks';
import { makeCertificate } from '../server/certificate.ts';

export interface ReceivedRecord {
  record_id: string;
  device_id: string;
  kind: string;
  schema: string;
  payload: { n: number };
}

export interface ReceivedBatch {
  id: string;
  headers: Record<string, string>;
  text: string;
  records: ReceivedRecord[];
  /** Undefined where it was not answered. */
  status: number | undefined;
}

/** Reaction to one batch: a status with headers, or nothing that is an answer. */
export type Reaction =
  | { status: number; headers?: Record<string, string>; delayMs?: number }
  | 'hang'
  | 'cut';

/** A real receiver of webhooks over TLS, which does to each batch what `react` says. */
export class Receiver implements AsyncDisposable {
  readonly ca: string;
  readonly batches: ReceivedBatch[] = [];
  /** Signatures found bad by an implementation that is not ours. */
  readonly badSignatures: string[] = [];
  secret = '';
  react: (batch: ReceivedBatch) => Reaction = () => ({ status: 204 });
  #server: Server | undefined;
  readonly #sockets = new Set<Duplex>();
  readonly #cert: { cert: string; key: string };
  #port = 0;

  private constructor(cert: { cert: string; key: string }) {
    this.#cert = cert;
    this.ca = cert.cert;
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver(await makeCertificate('receiver'));
    await receiver.open();
    return receiver;
  }

  get url(): string {
    return `https://localhost:${this.#port}/in?from=fleetpost`;
  }

  /** Those it has taken: of a record that came twice, both. */
  get taken(): ReceivedRecord[] {
    return this.batches.flatMap(({ status = 0, records }) => (status >= 200 && status < 300 ? records : []));
  }

  /** Opens it on the port that it had before. */
  async open(): Promise<void> {
    const server = createServer(this.#cert, (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const batch = this.#read(Buffer.concat(chunks).toString('utf8'), request.headers as never);
        const reaction = this.react(batch);
        if (reaction === 'hang') return;
        if (reaction === 'cut') {
          response.writeHead(200, { 'content-length': '1000' });
          // Before its head is through.
          request.socket.destroy();
          return;
        }
        const { status, headers = {}, delayMs = 0 } = reaction;
        setTimeout(() => {
          batch.status = status;
          response
            .writeHead(status, headers)
            .end(status === 204 ? undefined : '{"secret":"of the receiver"}');
        }, delayMs);
      });
    });
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(this.#port, 'localhost', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Nobody listens any more, and open connections are cut. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    // Not by `closeAllConnections`: it leaves those in their handshake, which would take records for seconds more.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #read(text: string, headers: Record<string, string>): ReceivedBatch {
    try {
      new Webhook(this.secret).verify(text, headers);
    } catch (error) {
      this.badSignatures.push(String(error));
    }
    const { records } = JSON.parse(text) as { records: ReceivedRecord[] };
    const batch = { id: headers['webhook-id'] ?? '', headers, text, records, status: undefined };
    this.batches.push(batch);
    return batch;
  }
}
