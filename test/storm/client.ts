import { Connections } from '../../src/device/simulator/connection/connections.ts';
import { addressOf } from '../../src/device/simulator/run/own-servers.ts';
import type { TestDevice } from '../harness/devices/device.ts';
import { requestText } from '../harness/devices/raw.ts';
import type { AdminAnswer, TestServer } from '../harness/server/server.ts';

export interface Answer {
  /** 0 where nobody answered, and whoever asks goes on. */
  status: number;
  /** Head and body, as they came. */
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
  admin<T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<AdminAnswer<T>>;
}

const connectionsMax = 256;
const sweepMs = 500;

/** The simulator's connections to one server. @throws where it does not answer */
export class StormClient implements Requester {
  readonly server: TestServer;
  readonly #connections: Connections;
  readonly #sweep: NodeJS.Timeout;

  constructor(server: TestServer) {
    this.server = server;
    const limits = { sharedMax: connectionsMax, waitingMax: connectionsMax };
    this.#connections = new Connections([addressOf(server.url, server.ca)], limits);
    this.#sweep = setInterval(() => this.#connections.sweep(), sweepMs);
  }

  async device(...[device, method, path, body, key]: Parameters<Requester['device']>): Promise<Answer> {
    const headers: Record<string, string> = { ...device.credentials };
    if (body !== undefined) {
      headers['Content-Type'] = 'application/json';
      headers['Content-Length'] = String(Buffer.byteLength(body));
    }
    if (key !== undefined) headers['Idempotency-Key'] = key;
    const text = requestText(method, path, headers, body);
    try {
      return await this.#send(text);
    } catch (error) {
      // On a loaded machine this process may wake up too late to close an idle connection before the server does:
      // as any client may (RFC 9110, 9.2.2), it then sends again what can be sent twice.
      const isRead = method === 'GET' || method === 'HEAD';
      const isAgain =
        key !== undefined || /\/mailbox\/ack\/|\/heartbeat$/.test(path) || isSyncAgain(path, body);
      if (!isRead && !isAgain) throw error;
      return this.#send(text);
    }
  }

  admin<T>(...params: Parameters<Requester['admin']>): Promise<AdminAnswer<T>> {
    return this.server.admin<T>(...params);
  }

  close(): void {
    clearInterval(this.#sweep);
    this.#connections.dropAll();
  }

  #send(request: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const isSent = this.#connections.send('shared', {
        device: -1,
        request,
        isCut: false,
        onSent: () => {},
        onAnswer: (status, text) => resolve({ status, text }),
        onFailure: () => reject(new Error('there was no answer')),
      });
      if (!isSent) reject(new Error('too many requests wait for a connection'));
    });
  }
}

/** Tells whether a request is a sync that can be sent twice: all records of a storm's are in a queue. */
export function isSyncAgain(path: string, body = ''): boolean {
  return path === '/v1/sync' && !body.includes('"verb":"requeue"');
}
