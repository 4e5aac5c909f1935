import { chmodSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { DeviceIdentity } from '../../client/link.ts';
import { AgentError } from '../agent-error.ts';
import { answerLocally, checkIdentity, errorBody, readLocalBody } from './local-request.ts';
import type { NativeRoutes } from './native-routes.ts';
import type { SdkRoutes } from './sdk-routes.ts';

const connectionsMax = 64;
const limits = {
  requireHostHeader: false,
  keepAlive: false,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 8_192,
};
/** Answers to connections that Node's parser refuses, by its error code. */
const refusals: Record<string, AgentError> = {
  HPE_INVALID_VERSION: new AgentError(505, 'version_not_supported', 'HTTP/1.1 is spoken here.'),
  ERR_HTTP_REQUEST_TIMEOUT: new AgentError(408, 'request_timeout', 'The request did not come in time.'),
};
const badRequest = new AgentError(400, 'bad_request', 'This is no request.');

/** The agent's socket: one request a connection. */
export class LocalServer {
  readonly #server: Server;
  readonly #identity: DeviceIdentity;
  readonly #sdk: SdkRoutes;
  readonly #native: NativeRoutes;
  readonly #stop: () => void;

  /** stop: called when the agent is told to end. */
  constructor(identity: DeviceIdentity, sdk: SdkRoutes, native: NativeRoutes, stop: () => void) {
    this.#identity = identity;
    this.#sdk = sdk;
    this.#native = native;
    this.#stop = stop;
    this.#server = createServer(limits, (request, response) => void this.#answer(request, response));
    this.#server.maxConnections = connectionsMax;
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuse(error, socket));
  }

  async listen(path: string): Promise<void> {
    // Between bind and chmod nobody else may connect.
    const mask = process.umask(0o177);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject);
        this.#server.listen(path, resolve);
      });
    } finally {
      process.umask(mask);
    }
    chmodSync(path, 0o600);
  }

  /** Takes no more requests, and gives those under way a second. */
  async close(): Promise<void> {
    this.#sdk.close();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    const timer = setTimeout(() => this.#server.closeAllConnections(), 1_000);
    await closed;
    clearTimeout(timer);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      const told = error instanceof AgentError ? error : new AgentError(500, 'internal_error', String(error));
      if (response.headersSent) response.destroy();
      else answerLocally(response, told.status, {}, errorBody(told));
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = request;
    if (request.httpVersion !== '1.1') throw refusals.HPE_INVALID_VERSION;
    const isNative = /^\/v1(?![^/?])/.test(url);
    const isState = method === 'GET' && url === '/';
    const isStop = method === 'DELETE' && url === '/stop-agent';
    checkIdentity(request, this.#identity, !isNative && !isState && !isStop);
    const body = await readLocalBody(request);
    if (isState) answerLocally(response, 200, {}, JSON.stringify(this.#sdk.state()));
    else if (isStop) {
      response.on('finish', () => this.#stop());
      answerLocally(response, 200, {}, '{"ok":true}');
    } else await (isNative ? this.#native : this.#sdk).handle(request, response, body);
  }
}

function refuse({ code = '' }: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable) return;
  const error = refusals[code] ?? badRequest;
  const body = errorBody(error);
  socket.end(
    `HTTP/1.1 ${error.status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}
