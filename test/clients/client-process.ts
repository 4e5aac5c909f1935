import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from '../harness/server/vitals.ts';
import { cDriver } from './c-client.ts';

const folder = fileURLToPath(new URL('.', import.meta.url));

/** The clients that this repository has: how their driver is started. A driver speaks JSON lines, as python-driver.py does. */
export const clients = {
  python: [
    'python3',
    '-B',
    `${folder}python-driver.py`,
    fileURLToPath(new URL('../../clients/python', import.meta.url)),
  ],
  typescript: [
    process.execPath,
    `${folder}typescript-driver.js`,
    fileURLToPath(new URL('../../dist/device.mjs', import.meta.url)),
  ],
  'C (OpenSSL)': cDriver('openssl'),
  // The same core behind another port: as long again, so by command.
  ...(process.env.CLIENTS === 'all' && { 'C (Mbed TLS)': cDriver('mbedtls') }),
};

/** Event that a driver reports. */
export interface ClientEvent {
  event: 'status' | 'mail' | 'queued' | 'flushed' | 'slept';
  id?: string;
  reason?: string;
  queued?: number;
  dropped?: number;
  refused?: number;
  doubtful?: number;
  empty?: boolean;
  payload?: { n?: number };
}

/** A client in a process of its own, so that it can be killed. */
export class ClientProcess implements AsyncDisposable {
  readonly events: ClientEvent[] = [];
  readonly #process: ChildProcess;
  readonly #exit: Promise<unknown>;
  #stderr = '';

  constructor(command: readonly string[], options: object, environment: NodeJS.ProcessEnv = {}) {
    const [file = '', ...args] = command;
    this.#process = spawn(file, args, { env: { ...process.env, ...environment } });
    this.#exit = once(this.#process, 'exit');
    this.#process.stderr?.on('data', (text) => {
      this.#stderr = `${this.#stderr}${text}`.slice(-4_000);
    });
    this.#process.stdin?.on('error', () => {});
    if (this.#process.stdout !== null) {
      createInterface(this.#process.stdout).on('line', (line) => this.events.push(JSON.parse(line)));
    }
    this.#say(options);
  }

  #say(line: object): void {
    this.#process.stdin?.write(`${JSON.stringify(line)}\n`);
  }

  takeMail(): void {
    this.#say({ do: 'mail' });
  }

  send(kind: 'datapoint' | 'message', n: number, more: object = {}): void {
    this.#say({ do: kind, name: kind === 'datapoint' ? 'reading' : 'note', payload: { n }, ...more });
  }

  /** Waits until the client has said that so many are in its queue: from there on none may be lost. */
  async queued(count: number): Promise<void> {
    await until(() => this.of('queued').length >= count, 60_000).catch(() => {
      throw new Error(`only ${this.of('queued').length} of ${count} were queued: ${this.#stderr}`);
    });
  }

  of(event: ClientEvent['event']): ClientEvent[] {
    return this.events.filter((one) => one.event === event);
  }

  /** Waits until nothing waits in the queue any more. */
  flushed(seconds = 90): Promise<ClientEvent> {
    return this.#emptied('flush', 'flushed', seconds);
  }

  /** Waits until the device sleeps, with nothing left to do. */
  slept(seconds = 90): Promise<ClientEvent> {
    return this.#emptied('sleep', 'slept', seconds);
  }

  async #emptied(command: string, event: ClientEvent['event'], seconds: number): Promise<ClientEvent> {
    const before = this.of(event).length;
    this.#say({ do: command, seconds });
    await until(() => this.of(event).length > before, (seconds + 5) * 1_000);
    const last = this.of(event).at(-1);
    if (last?.empty !== true) throw new Error(`${JSON.stringify(last)} ${this.#stderr}`);
    return last;
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exit;
  }

  async close(): Promise<void> {
    this.#say({ do: 'close' });
    await this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill();
  }
}
