import { readFileSync } from 'node:fs';
import { Agent, errors, request } from 'undici';
import type { TestDevice } from '../harness/device.ts';
import type { TestServer } from '../harness/server.ts';

export interface Answer {
  /** 0 where nobody answered, and whoever asks goes on. */
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** Sends what real clients would, over HTTPS and, as an operator, to the admin API. */
export interface Requester {
  device(
    device: TestDevice,
    method: 'GET' | 'HEAD' | 'POST' | 'PUT',
    path: string,
    body?: string,
    key?: string,
  ): Promise<Answer>;
  admin(method: 'GET' | 'POST' | 'DELETE', path: string, body?: string): Promise<Answer>;
}

/** To one server. @throws where it does not answer */
export class StormClient implements Requester {
  readonly server: TestServer;
  /** Closes idle connections itself, well before the server does: none is lost between requests. */
  readonly #agent: Agent;

  constructor(server: TestServer) {
    this.server = server;
    const ca = readFileSync(server.report.cert_file, 'utf8');
    this.#agent = new Agent({
      connect: { ca },
      pipelining: 1,
      keepAliveTimeout: 3_000,
      headersTimeout: 60_000,
    });
  }

  async device(
    device: TestDevice,
    method: 'GET' | 'HEAD' | 'POST' | 'PUT',
    path: string,
    body?: string,
    key?: string,
  ): Promise<Answer> {
    const headers: Record<string, string> = { ...device.credentials };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (key !== undefined) headers['idempotency-key'] = key;
    return this.#send(`${this.server.url}${path}`, method, headers, body);
  }

  admin(method: 'GET' | 'POST' | 'DELETE', path: string, body?: string): Promise<Answer> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.server.token}` };
    if (body !== undefined) headers['content-type'] = 'application/json';
    return this.#send(`${this.server.report.admin_url}/admin/v1${path}`, method, headers, body);
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #send(
    url: string,
    method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE',
    headers: Record<string, string>,
    body: string | undefined,
  ): Promise<Answer> {
    const send = async (): Promise<Answer> => {
      const answer = await request(url, { method, headers, body: body ?? null, dispatcher: this.#agent });
      return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
    };
    try {
      return await send();
    } catch (error) {
      // On a loaded machine this process may wake up too late to close an idle connection before the server does:
      // as any client may (RFC 9110, 9.2.2), it then sends again what can be sent twice.
      const isRepeatable =
        method === 'GET' ||
        method === 'HEAD' ||
        /\/mailbox\/ack\/|\/heartbeat$/.test(url) ||
        'idempotency-key' in headers;
      if (!isRepeatable || !(error instanceof errors.SocketError)) throw error;
      return send();
    }
  }
}
