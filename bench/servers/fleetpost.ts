import { join } from 'node:path';
import type { RecordableHistogram } from 'node:perf_hooks';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { pathTo } from '../../src/contract/routes/path.ts';
import type { Config } from '../../src/server/configuration/config.ts';
import { TestServer } from '../../test/harness/server/server.ts';
import { certificate } from './certificate.ts';
import { fleetId } from './devices.ts';
import { enqueue, type Mail } from './mail-queue.ts';
import { datapointSchema, messageSchema, payloadSchema } from './payload-schema.ts';
import type { Credentials, MailServer, StartOptions, Subject } from './subject.ts';
import { removeFolder, temporaryFolder } from './temporary-folder.ts';
import type { ThreadClock, ThreadTimes } from './thread-times.ts';

/** The most devices that one import makes. */
const importMax = 1_000_000;

export interface FleetpostOptions extends StartOptions {
  /** Anything else of the configuration. */
  config?: Partial<Config>;
  /** Opens Node's inspector on a free port of loopback, by which its garbage is collected. */
  isInspected?: boolean;
}

/** A real server process on a data folder of its own, with the fleet, the two schemas and its devices. */
export class Fleetpost implements MailServer {
  readonly data = join(temporaryFolder(), 'data');
  readonly certFile: string;
  readonly devices: Credentials[] = [];
  /** Set where the figures are to say which threads needed what. */
  threadClock: ThreadClock | undefined;
  readonly #config: Partial<Config>;
  readonly #nodeFlags: readonly string[];
  #process: TestServer | undefined;
  #admin: AdminClient | undefined;

  private constructor(certFile: string, config: Partial<Config>, nodeFlags: readonly string[]) {
    this.certFile = certFile;
    this.#config = config;
    this.#nodeFlags = nodeFlags;
  }

  static async start({ devices, ...options }: FleetpostOptions): Promise<Fleetpost> {
    const server = await Fleetpost.startNode(options);
    await server.addFleet(fleetId);
    await server.importDevices(devices);
    return server;
  }

  /** Starts a node without a fleet of its own: `devices` stays empty. */
  static async startNode({
    shards,
    tls,
    config = {},
    isInspected = false,
  }: Omit<FleetpostOptions, 'devices'>): Promise<Fleetpost> {
    const { certFile, keyFile } = tls ?? (await certificate());
    const values = { shards, tlsCertFile: certFile, tlsKeyFile: keyFile, ...config };
    const server = new Fleetpost(certFile, values, isInspected ? ['--inspect=127.0.0.1:0'] : []);
    await server.begin();
    return server;
  }

  get #server(): TestServer {
    if (this.#process === undefined) throw new Error('the server has not been started');
    return this.#process;
  }

  get url(): string {
    return this.#server.url;
  }

  /** The admin API without a path; `/metrics` is there for everyone. */
  get adminUrl(): string {
    return this.#server.report.admin_url;
  }

  get admin(): AdminClient {
    if (this.#admin === undefined) throw new Error('the server has not been started');
    return this.#admin;
  }

  get token(): string {
    return this.#server.token;
  }

  /** URL of Node's inspector, of a server started with `isInspected`: it prints it before anything else. */
  get inspectorUrl(): string {
    const url = /^Debugger listening on (ws:\S+)$/m.exec(this.#server.stderr)?.[1];
    if (url === undefined) throw new Error('the server was started without the inspector');
    return url;
  }

  processIds(): number[] {
    return [this.#server.report.pid];
  }

  threadTimes(): ThreadTimes | undefined {
    return this.threadClock?.read();
  }

  /** Starts the process on its data folder; settles once it says that it is ready. Its ports are new ones. */
  async begin(): Promise<void> {
    this.#process = await TestServer.start(this.#config, this.data, { nodeFlags: this.#nodeFlags });
    this.#admin = new AdminClient({ url: this.adminUrl, token: this.token });
  }

  /** Ends the process; its data stays. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#process?.isRunning) await (signal === 'SIGKILL' ? this.#process.kill() : this.#process.stop());
  }

  async restart(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.end(signal);
    await this.begin();
  }

  /** Adds a fleet with the two schemas. */
  async addFleet(id: string): Promise<void> {
    await this.admin.request('POST', pathTo('/fleets', {}), { json: { fleet_id: id } });
    for (const [kind, name] of [
      ['datapoint', datapointSchema],
      ['message', messageSchema],
    ] as const) {
      const path = pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', { fleet_id: id, kind, name });
      await this.admin.request('PUT', path, { json: payloadSchema });
    }
  }

  /** Makes more devices, and adds them to `devices`. */
  async importDevices(count: number): Promise<void> {
    // One by one: a million arguments are more than a call takes.
    for (const device of await this.makeDevices(fleetId, count)) this.devices.push(device);
  }

  async makeDevices(fleet: string, count: number): Promise<Credentials[]> {
    const made: Credentials[] = [];
    for (let left = count; left > 0; left -= importMax) {
      const json = { count: Math.min(left, importMax) };
      const csv = await this.admin.requestText('POST', `/fleets/${fleet}/devices:import`, { json });
      const [, ...lines] = csv.trimEnd().split('\n');
      for (const line of lines) {
        const [, deviceId = '', secret = ''] = line.split(',');
        made.push({ fleetId: fleet, deviceId, secret });
      }
    }
    return made;
  }

  /** Queues mail through the admin API. */
  enqueue(mails: readonly Mail[], latency?: RecordableHistogram): Promise<string[]> {
    return enqueue([{ url: this.adminUrl, token: this.token }], mails, latency);
  }

  async answersByStatus(): Promise<ReadonlyMap<number, number>> {
    const metrics = await (await fetch(`${this.adminUrl}/metrics`)).text();
    const counts = new Map<number, number>();
    for (const [, labels = '', value] of metrics.matchAll(/^fleetpost_requests_total\{(.*)\} (\d+)$/gm)) {
      const status = Number(/status="(\d+)"/.exec(labels)?.[1]);
      counts.set(status, (counts.get(status) ?? 0) + Number(value));
    }
    return counts;
  }

  async stop(): Promise<void> {
    await this.end();
    removeFolder(join(this.data, '..'));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

export const fleetpost: Subject & { start(options: FleetpostOptions): Promise<Fleetpost> } = {
  name: 'fleetpost',
  durability: 'fsync before the answer',
  missing: () => undefined,
  start: (options) => Fleetpost.start(options),
};
