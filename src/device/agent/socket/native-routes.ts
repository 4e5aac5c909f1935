import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream';
import type { Answer } from '../../client/answer.ts';
import { AgentError } from '../agent-error.ts';
import type { Uplink } from '../uplink.ts';
import { answerLocally } from './local-request.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];
const passedOn = ['content-type', 'idempotency-key', 'recorded-at', 'accept'];
/** Headers of an answer that are about the server's connection, or about the length of the body sent on it. */
const ofConnection = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'date'];
/** The server allows a device 4, and the agent needs one itself. */
const nativeStreamsMax = 2;

/** The device API as the server has it, on the socket: the agent adds who the device is. */
export class NativeRoutes {
  readonly #uplink: Uplink;
  #streams = 0;

  constructor(uplink: Uplink) {
    this.#uplink = uplink;
  }

  async handle(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const { method = '', url = '' } = request;
    if (!methods.includes(method) || !/^\/v1(\/[A-Za-z0-9_/-]*)?(\?[\w=&-]*)?$/.test(url)) {
      throw new AgentError(404, 'route_not_found', 'There is no such route.');
    }
    const [, kind, name] = /^\/v1\/(datapoint|msg)\/([A-Za-z0-9_-]{1,255})$/.exec(url) ?? [];
    if (url === '/v1/events' && method === 'GET') return this.#stream(response);
    if (method === 'POST' && name !== undefined) {
      return this.#send(request, response, kind === 'msg' ? 'msg' : 'datapoint', name, body);
    }
    answerAsServer(response, await this.#uplink.ask(method, url, headersOf(request), bodyOrNone(body)));
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    kind: 'datapoint' | 'msg',
    name: string,
    body: Buffer,
  ): Promise<void> {
    const { 'idempotency-key': key, 'recorded-at': recordedAt } = headersOf(request);
    const answer = await this.#uplink.send({ kind, name, body, key, recordedAt });
    if (answer === undefined) answerLocally(response, 201, { 'X-Queued': 'true' }, '{"ok":true}');
    else answerAsServer(response, answer);
  }

  async #stream(response: ServerResponse): Promise<void> {
    await this.#uplink.requireConnection();
    if (this.#streams >= nativeStreamsMax) {
      throw new AgentError(
        403,
        'too_many_streams',
        `At most ${nativeStreamsMax} programs can listen at a time.`,
      );
    }
    this.#streams += 1;
    const connection = this.#uplink.link.connect();
    response.on('close', () => {
      this.#streams -= 1;
      connection.close();
    });
    const headers = this.#uplink.link.headers({ Accept: 'text/event-stream' });
    const stream = await connection.stream('/v1/events', headers);
    const type = stream.headers['content-type'] ?? 'application/json';
    response.writeHead(stream.statusCode ?? 500, { 'Content-Type': type, Connection: 'close' });
    response.flushHeaders();
    pipeline(stream, response, () => {});
  }
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const found = Object.entries(headers).filter(([name]) => passedOn.includes(name));
  return Object.fromEntries(found.map(([name, value]) => [name, String(value)]));
}

function bodyOrNone(body: Buffer): Buffer | undefined {
  return body.length === 0 ? undefined : body;
}

function answerAsServer(response: ServerResponse, { status, headers, body }: Answer): void {
  const own = Object.fromEntries(Object.entries(headers).filter(([name]) => !ofConnection.includes(name)));
  if (status === 204) response.writeHead(204, { ...own, Connection: 'close' }).end();
  else answerLocally(response, status, own, body);
}
