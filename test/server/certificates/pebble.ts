import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { createAuthority, createServerCertificate } from '../../../src/server/certificates/authority.ts';
import { until } from '../../harness/server/vitals.ts';

/**
 * A real ACME directory, Debian's pebble, which can be stopped and started again, and the DNS server that it asks: every
 * name leads to this machine. Like Let's Encrypt it refuses some nonces and reuses some authorizations; it only does not
 * sleep before it validates.
 */
export class Pebble implements AsyncDisposable {
  /** Authority of the directory's own certificate. */
  readonly caFile: string;
  /** Port on which it looks for the answers of challenges. */
  readonly challengePort: number;
  readonly #folder: string;
  readonly #port: number;
  readonly #managementPort: number;
  readonly #dnsPort: number;
  readonly #dnsManagementPort: number;
  readonly #ca: string;
  #dns: ChildProcess | undefined;
  #process: ChildProcess | undefined;
  #log = '';

  private constructor(folder: string, ca: string, ports: readonly number[]) {
    this.#folder = folder;
    this.#ca = ca;
    this.caFile = join(folder, 'ca.pem');
    [this.#port = 0, this.#managementPort = 0, this.challengePort = 0] = ports;
    [this.#dnsPort = 0, this.#dnsManagementPort = 0] = ports.slice(3);
  }

  /** Certificates are valid for that long. */
  static async start(validitySeconds = 86_400): Promise<Pebble> {
    const folder = mkdtempSync(join(tmpdir(), 'fleetpost-pebble-'));
    const terms = { hosts: ['localhost', '127.0.0.1'], days: 1 };
    const authority = await createAuthority(terms);
    const { certificate, key } = await createServerCertificate(authority, terms);
    const ports: number[] = [];
    while (ports.length < 5) ports.push(await freePort());
    const pebble = new Pebble(folder, authority.certificate, ports);
    writeFileSync(pebble.caFile, authority.certificate);
    const [listenAddress, managementListenAddress] = ports.map((port) => `127.0.0.1:${port}`);
    const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    writeFileSync(certFile, certificate);
    writeFileSync(keyFile, key);
    const config = {
      listenAddress,
      managementListenAddress,
      certificate: certFile,
      privateKey: keyFile,
      httpPort: pebble.challengePort,
      tlsPort: 0,
      ocspResponderURL: '',
      externalAccountBindingRequired: false,
      certificateValidityPeriod: validitySeconds,
    };
    writeFileSync(pebble.#configFile, JSON.stringify({ pebble: config }));
    await pebble.#startDns();
    await pebble.run();
    return pebble;
  }

  get directory(): string {
    return `https://127.0.0.1:${this.#port}/dir`;
  }

  get #configFile(): string {
    return join(this.#folder, 'pebble.json');
  }

  /** Number of orders since it was started. */
  get orders(): number {
    return this.#log.match(/Added order/g)?.length ?? 0;
  }

  /** Starts the directory, which knows nothing of what it did before. */
  async run(): Promise<void> {
    const args = ['-config', this.#configFile, '-dnsserver', `127.0.0.1:${this.#dnsPort}`];
    const child = spawn('pebble', args, {
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#process = child;
    this.#log = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#log += text;
      });
    await until(() => accepts(this.#port));
  }

  /** Nobody listens any more. */
  async stop(): Promise<void> {
    await end(this.#process);
    this.#process = undefined;
  }

  /** The root that its certificates come from, PEM; another one after each start. */
  async root(): Promise<string> {
    const asked = request(`https://127.0.0.1:${this.#managementPort}/roots/0`, { ca: this.#ca }).end();
    const [response] = await once(asked, 'response');
    let text = '';
    for await (const piece of response.setEncoding('utf8')) text += piece;
    return text;
  }

  /** Leads a name elsewhere. */
  async lead(host: string, address: string): Promise<void> {
    const body = JSON.stringify({ host: `${host}.`, addresses: [address] });
    await fetch(`http://127.0.0.1:${this.#dnsManagementPort}/add-a`, { method: 'POST', body });
  }

  async #startDns(): Promise<void> {
    const none = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''];
    const management = ['-management', `127.0.0.1:${this.#dnsManagementPort}`];
    const args = [
      '-dns01',
      `127.0.0.1:${this.#dnsPort}`,
      '-defaultIPv4',
      '127.0.0.1',
      ...management,
      ...none,
    ];
    this.#dns = spawn('pebble-challtestsrv', args, { stdio: 'ignore' });
    await until(() => accepts(this.#dnsManagementPort));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.stop(), end(this.#dns)]);
    rmSync(this.#folder, { recursive: true });
  }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
