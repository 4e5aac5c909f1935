import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../../../core/errors.ts';
import type { NodeAddress } from '../connection/connections.ts';
import { freePort } from './free-port.ts';
import { ServerProcess, tokenOf } from './server-process.ts';

const mainFile = new URL('../../../main.js', import.meta.url).pathname;
/** Kept of what a server says, for the sentence when it ends by itself. */
const outputLengthMax = 4_000;

/** A server that is up. */
export interface ServedAt {
  url: string;
  adminUrl: string;
  token: string;
  certFile: string;
}

/** A server of the run's own, on a folder that goes with the run. Only these are ever killed. */
class OwnServer {
  readonly #environment: NodeJS.ProcessEnv;
  readonly #onEnd: (reason: string) => void;
  #process: ServerProcess | undefined;
  at: ServedAt | undefined;

  constructor(folder: string, environment: NodeJS.ProcessEnv, onEnd: (reason: string) => void) {
    this.#environment = { ...bareEnvironment(), ...environment, FLEETPOST_DATA: folder };
    this.#onEnd = onEnd;
  }

  get isUp(): boolean {
    return this.#process !== undefined;
  }

  /** Starts it on its folder; settles when it is ready. @throws OperatorError if it ends instead. */
  async start(): Promise<void> {
    const server = new ServerProcess([process.execPath, mainFile], {
      environment: this.#environment,
      outputLengthMax,
    });
    const report = await server.ready;
    this.#process = server;
    server.child.once('exit', (status, signal) => {
      if (this.#process !== server) return;
      this.#process = undefined;
      this.#onEnd(`A server of the run ended by itself with ${signal ?? status}: ${server.output}`);
    });
    const { url, admin_url: adminUrl, cert_file: certFile } = report;
    this.at = { url, adminUrl, token: tokenOf(report), certFile };
  }

  /** Ends it and waits for its end. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const server = this.#process;
    this.#process = undefined;
    await server?.end(signal);
  }
}

/** Servers that the simulator has started itself: one on a data folder, or several on databases. */
export class OwnServers implements AsyncDisposable {
  readonly #servers: readonly OwnServer[];
  /** Rejects when one ends without having been killed. */
  readonly ended: Promise<never>;
  /** Kills so far. */
  kills = 0;
  #turn = 0;

  private constructor(servers: readonly OwnServer[], ended: Promise<never>) {
    this.#servers = servers;
    this.ended = ended;
    // A failed start is reported to the caller that waits for the server; here it must not count as unhandled.
    ended.catch(() => {});
  }

  /** @throws OperatorError */
  static async start(
    folder: string,
    { nodes, databases, shards }: { nodes: number; databases: readonly string[]; shards: number },
  ): Promise<OwnServers> {
    const store =
      databases.length === 0
        ? {}
        : { FLEETPOST_STORE: JSON.stringify({ engine: 'postgres', shards: databases }) };
    if (databases.length > 0) await migrate(store);
    const servers: OwnServer[] = [];
    let fail: (reason: string) => void = () => {};
    const ended = new Promise<never>((_, reject) => {
      fail = (reason) => reject(new OperatorError(reason));
    });
    for (let node = 0; node < nodes; node += 1) {
      const own = join(folder, `node-${node}`);
      mkdirSync(own);
      // On ports that stay, so that devices find it again.
      const [listen, admin] = [await freePort(), await freePort()];
      const server = new OwnServer(
        own,
        {
          ...store,
          FLEETPOST_LISTEN: `127.0.0.1:${listen}`,
          FLEETPOST_ADMIN: `127.0.0.1:${admin}`,
          FLEETPOST_SHARDS: String(shards),
          FLEETPOST_LOG_LEVEL: 'error',
          // The whole fleet has one address, and storms of it are what is tried.
          FLEETPOST_CONNECTIONS_PER_SECOND_PER_ADDRESS_MAX: '0',
        },
        fail,
      );
      servers.push(server);
      await server.start();
    }
    return new OwnServers(servers, ended);
  }

  /** Those that are up. */
  get up(): ServedAt[] {
    return this.#servers.filter(({ isUp }) => isUp).flatMap(({ at }) => at ?? []);
  }

  get nodes(): NodeAddress[] {
    return this.#servers.flatMap(({ at }) =>
      at === undefined ? [] : [addressOf(at.url, readFileSync(at.certFile, 'utf8'))],
    );
  }

  /** Kills one at once, each in its turn, and starts it again. @throws OperatorError */
  async kill(): Promise<void> {
    const server = this.#servers[this.#turn % this.#servers.length];
    this.#turn += 1;
    if (server === undefined || !server.isUp) return;
    await server.end('SIGKILL');
    this.kills += 1;
    await server.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.end('SIGTERM')));
  }
}

/** A server by its URL and the certificates to trust. */
export function addressOf(url: string, ca: string): NodeAddress {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || '443'), ca };
}

/** The environment without what configures another server, whose store would be this one's too. */
function bareEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('FLEETPOST_')));
}

async function migrate(environment: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(process.execPath, [mainFile, 'migrate'], {
    env: { ...bareEnvironment(), ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let reason = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    reason = (reason + text).slice(-outputLengthMax);
  });
  const [status] = await once(child, 'close');
  if (status !== 0) throw new OperatorError(`The databases could not be prepared: ${reason}`);
}
