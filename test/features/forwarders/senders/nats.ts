import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type ConnectionOptions, connect, type NatsConnection } from '@nats-io/transport-node';
import { freePort } from '../../../../src/device/simulator/run/free-port.ts';

export interface KeptMessage {
  subject: string;
  id: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it finds
  json: any;
}

/** Whom a server lets in, and what it shows of itself. */
export interface NatsSettings {
  /** Lines of its configuration file, in which `FOLDER` stands for the one that `files` are in. */
  lines: readonly string[];
  files: Record<string, string>;
  /** How the tests themselves get in. */
  access: ConnectionOptions;
}

const token = 'hidden-token';
const byToken: NatsSettings = {
  lines: [`authorization { token: "${token}" }`],
  files: {},
  access: { token },
};

/** A real nats-server with JetStream, which can be killed and started again on what it has on disk. */
export class NatsServer implements AsyncDisposable {
  readonly port: number;
  readonly token = token;
  readonly #folder = mkdtempSync(join(tmpdir(), 'fleetpost-nats-'));
  readonly #access: ConnectionOptions;
  #process: ChildProcess | undefined;

  private constructor(port: number, { lines, files, access }: NatsSettings) {
    this.port = port;
    this.#access = access;
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.#folder, name), text);
    const own = ['host: 127.0.0.1', `port: ${port}`, 'jetstream { store_dir: "FOLDER/store" }'];
    writeFileSync(this.#configFile, [...own, ...lines].join('\n').replaceAll('FOLDER', this.#folder));
  }

  /** Starts a server that asks for a token, unless the settings say otherwise. */
  static async start(settings = byToken): Promise<NatsServer> {
    const server = new NatsServer(await freePort(), settings);
    await server.run();
    return server;
  }

  get #configFile(): string {
    return join(this.#folder, 'server.conf');
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  async run(): Promise<void> {
    // Debian has it in /usr/sbin, which is not in the PATH of every user.
    const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
    const child = spawn('nats-server', ['-c', this.#configFile], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#process = child;
    let log = '';
    await new Promise<void>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        log += text;
        if (log.includes('Server is ready')) resolve();
      });
      child.on('error', reject);
      child.on('exit', (code) => reject(new Error(`nats-server ended with ${code}: ${log}`)));
    });
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }

  async connect(): Promise<NatsConnection> {
    return connect({ servers: `localhost:${this.port}`, reconnect: false, ...this.#access });
  }

  async addStream(name: string, subject: string): Promise<void> {
    const connection = await this.connect();
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name, subjects: [subject] });
    await connection.close();
  }

  /** All that a stream has, in its order. */
  async messages(name: string): Promise<KeptMessage[]> {
    const connection = await this.connect();
    const manager = await jetstreamManager(connection);
    const { messages } = (await manager.streams.info(name)).state;
    const consumer = await jetstream(connection).consumers.get(name);
    const found: KeptMessage[] = [];
    while (found.length < messages) {
      const batch = await consumer.fetch({ max_messages: messages - found.length, expires: 2_000 });
      for await (const message of batch) {
        const id = message.headers?.get('Nats-Msg-Id') ?? '';
        found.push({ subject: message.subject, id, json: message.json() });
      }
    }
    await connection.close();
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
