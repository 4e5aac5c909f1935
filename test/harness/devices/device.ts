import { Agent, fetch, type RequestInit } from 'undici';
import type { TestServer } from '../server/server.ts';

export interface DeviceAnswer {
  status: number;
  headers: Headers;
  /** The body as it came. */
  text: string;
  /** Parsed, or undefined for an empty body. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
  json: any;
}

export interface Credentials {
  'X-Fleet-ID': string;
  'X-Device-ID': string;
  'X-Device-Secret': string;
}

export const anyObject = { type: 'object' };

export class TestFleet {
  /** Another process takes over after a restart. */
  server: TestServer;
  readonly fleetId: string;

  constructor(server: TestServer, fleetId: string) {
    this.server = server;
    this.fleetId = fleetId;
  }

  async createDevice(body: object = {}): Promise<TestDevice> {
    const path = `/fleets/${this.fleetId}/devices`;
    const answer = await this.server.admin<{ device_id: string; device_secret: string }>('POST', path, body);
    if (answer.status !== 201) throw new Error(JSON.stringify(answer));
    return new TestDevice(this.server, this.fleetId, answer.body.device_id, answer.body.device_secret);
  }

  /** Puts an action for messages `opened`, in JavaScript, unless `more` says otherwise. */
  putAction(
    name: string,
    source: string,
    more: object = {},
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    const on = [{ kind: 'message', schema: 'opened' }];
    const document = { source, language: 'javascript', on, ...more };
    return this.server.admin('PUT', `/fleets/${this.fleetId}/actions/${name}`, document);
  }

  async putSchema(kind: string, name: string, schema: object): Promise<void> {
    const answer = await this.server.admin('PUT', `/fleets/${this.fleetId}/schemas/${kind}/${name}`, schema);
    if (answer.status !== 200 && answer.status !== 201) throw new Error(JSON.stringify(answer));
  }
}

/** A fleet with a datapoint schema `reading` and a message schema `note` that take any object. */
export async function createFleet(server: TestServer, body: object = {}): Promise<TestFleet> {
  const created = await server.admin<{ fleet_id: string }>('POST', '/fleets', body);
  if (created.status !== 201) throw new Error(JSON.stringify(created));
  const fleet = new TestFleet(server, created.body.fleet_id);
  await fleet.putSchema('datapoint', 'reading', anyObject);
  await fleet.putSchema('message', 'note', anyObject);
  return fleet;
}

/** A device that speaks through Node's own fetch implementation. */
export class TestDevice {
  readonly server: TestServer;
  readonly fleetId: string;
  readonly deviceId: string;
  readonly secret: string;

  constructor(server: TestServer, fleetId: string, deviceId: string, secret: string) {
    this.server = server;
    this.fleetId = fleetId;
    this.deviceId = deviceId;
    this.secret = secret;
  }

  get credentials(): Credentials {
    return { 'X-Fleet-ID': this.fleetId, 'X-Device-ID': this.deviceId, 'X-Device-Secret': this.secret };
  }

  /** Path of this device in the admin API. */
  get adminPath(): string {
    return `/fleets/${this.fleetId}/devices/${this.deviceId}`;
  }

  /** The same device towards another process, after a restart. */
  on(server: TestServer): TestDevice {
    return new TestDevice(server, this.fleetId, this.deviceId, this.secret);
  }

  /** A body that is an object is sent as JSON; text and bytes are sent as they are, as application/json. */
  async request(
    method: string,
    path: string,
    body?: object | string | Uint8Array,
    headers: Record<string, string> = {},
    agent: Agent = this.server.agent,
  ): Promise<DeviceAnswer> {
    const init: RequestInit = { method, dispatcher: agent, headers: { ...this.credentials, ...headers } };
    if (body !== undefined) {
      init.headers = { 'Content-Type': 'application/json', ...init.headers } as Record<string, string>;
      init.body = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
    }
    const response = await fetch(`${this.server.url}${path}`, init);
    const text = await response.text();
    let json: unknown;
    try {
      json = text === '' ? undefined : JSON.parse(text);
    } catch {
      json = undefined;
    }
    return { status: response.status, headers: response.headers as unknown as Headers, text, json };
  }

  heartbeat(): Promise<DeviceAnswer> {
    return this.request('POST', '/v1/heartbeat');
  }

  next(query = ''): Promise<DeviceAnswer> {
    return this.request('GET', `/v1/mailbox/next${query}`);
  }

  settle(verb: 'ack' | 'reject' | 'requeue', mailId: string, agent?: Agent): Promise<DeviceAnswer> {
    return this.request('PUT', `/v1/mailbox/${verb}/${mailId}`, undefined, {}, agent);
  }

  /** All that waits for it, as the admin API lists it. */
  async mails(): Promise<{ name: string; payload: Record<string, unknown> }[]> {
    const path = `${this.adminPath}/mail?limit=1000`;
    const { body } = await this.server.admin<{
      items: { name: string; payload: Record<string, unknown> }[];
    }>('GET', path);
    return body.items;
  }

  /** Queues mail through the admin API, the payload sent byte for byte. */
  async sendMail(
    name = 'note',
    payload = '{}',
    query = '',
  ): Promise<{ status: number; mailId: string; size: number; body: Record<string, unknown> }> {
    const path = `${this.adminPath}/mail/${name}${query}`;
    const { status, body } = await this.server.admin('POST', path, payload);
    return { status, mailId: body.mail_id as string, size: body.mailbox_size as number, body };
  }
}

/** An agent whose requests all travel on one connection, which the acceptor gave to one worker. */
export function oneConnection(server: TestServer): Agent {
  return new Agent({ connect: { ca: server.ca }, connections: 1, pipelining: 1 });
}
