import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { until } from '../../harness/server/vitals.ts';

/** The file that goes to devices. */
export const agentFile = fileURLToPath(new URL('../../../dist/agent.mjs', import.meta.url));

/** Answer on the socket, whose connection has ended. */
export interface LocalAnswer {
  status: number;
  /** As they were written. */
  headers: Record<string, string>;
  body: string;
}

/** An agent as a process, on a socket of its own. */
export class AgentProcess implements AsyncDisposable {
  readonly environment: NodeJS.ProcessEnv;
  readonly socketPath: string;
  #process: ChildProcess | undefined;
  /** The last that `run` has said. */
  said = '';

  constructor(environment: NodeJS.ProcessEnv) {
    this.socketPath = join(temporaryFolder(), 'agent', 'agent.sock');
    this.environment = { ...process.env, FLEETPOST_SOCKET: this.socketPath, ...environment };
  }

  /** Runs it in the foreground. */
  async run(...flags: string[]): Promise<this> {
    const child = spawn(process.execPath, [agentFile, 'run', ...flags], { env: this.environment });
    this.#process = child;
    for (const output of [child.stderr, child.stdout]) {
      output.on('data', (text) => {
        this.said = `${this.said}${text}`.slice(-4_000);
      });
    }
    await until(() =>
      this.ask('GET', '/').then(
        () => true,
        () => child.exitCode !== null,
      ),
    );
    if (child.exitCode !== null) throw new Error(`the agent has ended: ${this.said}`);
    return this;
  }

  /** Runs a command of it to its end. */
  command(...words: string[]): { status: number | null; text: string } {
    const { status, stdout } = spawnSync(process.execPath, [agentFile, ...words], {
      env: this.environment,
      encoding: 'utf8',
    });
    return { status, text: stdout.trim() };
  }

  get pid(): number {
    return Number(readFileSync(this.socketPath.replace('.sock', '.pid'), 'utf8'));
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Sends bytes as they are, and reads until the agent ends the connection. */
  async raw(text: string): Promise<LocalAnswer> {
    const socket = await this.open();
    socket.write(text);
    let found = '';
    for await (const part of socket) found += part;
    return parse(found);
  }

  open(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.socketPath, () => resolve(socket));
      socket.setEncoding('utf8');
      socket.on('error', reject);
    });
  }

  /** Asks as the SDKs do: no Host is sent, and nothing about the connection. */
  ask(
    method: string,
    path: string,
    body?: string,
    headers: Record<string, string> = {},
  ): Promise<LocalAnswer> {
    const { FOSTROM_FLEET_ID: fleet = '', FOSTROM_DEVICE_ID: device = '' } = this.environment;
    const all = {
      'X-Fleet-ID': fleet,
      'X-Device-ID': device,
      ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }),
      ...headers,
    };
    const lines = Object.entries(all).flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`]));
    return this.raw(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body ?? ''}`);
  }

  async listen(): Promise<LocalEvents> {
    return new LocalEvents(await this.open(), this.environment);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.command('stop');
    await this.kill();
  }
}

function parse(text: string): LocalAnswer {
  const [head = '', body = ''] = text.split(/\r\n\r\n(.*)/s);
  const [first = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s) as [string, string]));
  return { status: Number(first.split(' ')[1]), headers, body };
}

/** The stream of events on the socket. */
export class LocalEvents implements Disposable {
  readonly #socket: Socket;
  text = '';

  constructor(socket: Socket, { FOSTROM_FLEET_ID, FOSTROM_DEVICE_ID }: NodeJS.ProcessEnv) {
    this.#socket = socket;
    socket.on('data', (part) => {
      this.text += part;
    });
    socket.write(
      `GET /events HTTP/1.1\r\nX-Fleet-ID: ${FOSTROM_FLEET_ID}\r\nX-Device-ID: ${FOSTROM_DEVICE_ID}\r\n\r\n`,
    );
  }

  /** The names of what came, in its order. */
  get names(): string[] {
    return [...this.text.matchAll(/^event: (\w+)$/gm)].map(([, name = '']) => name);
  }

  /** The data of the last event of a name. */
  dataOf(name: string): Record<string, unknown> {
    const found = [...this.text.matchAll(new RegExp(`^event: ${name}\\ndata: (.*)$`, 'gm'))].at(-1);
    return JSON.parse(found?.[1] ?? 'null');
  }

  async come(...names: string[]): Promise<void> {
    await until(() => names.every((name, index) => this.names[index] === name)).catch(() => {
      throw new Error(`${names} did not come, but ${this.text}`);
    });
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
