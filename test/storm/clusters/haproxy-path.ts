import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import type { DatabasePath } from '../../harness/postgres/database-path.ts';
import { patiently } from '../../harness/postgres/postgres.ts';

/** A server that HAProxy may lead to, and where it is asked whether it is primary. */
export interface Candidate {
  name: string;
  port: number;
  restPort: number;
}

/** The configuration that the example of patroni has, but for the ports. */
function configuration(port: number, candidates: readonly Candidate[]): string {
  return [
    'global',
    '  maxconn 1000',
    'defaults',
    '  mode tcp',
    '  retries 2',
    '  timeout client 30m',
    '  timeout connect 4s',
    '  timeout server 30m',
    '  timeout check 5s',
    'listen postgres',
    `  bind 127.0.0.1:${port}`,
    '  option httpchk OPTIONS /primary',
    '  http-check expect status 200',
    '  default-server inter 3s fall 3 rise 2 on-marked-down shutdown-sessions',
    ...candidates.map(
      (one) => `  server ${one.name} 127.0.0.1:${one.port} maxconn 200 check port ${one.restPort}`,
    ),
    '',
  ].join('\n');
}

/** A real HAProxy beside a node, which follows what patroni says; stopped, it carries nothing. */
export class HaproxyPath implements DatabasePath {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly #process: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#process = child;
  }

  static async start(folder: string, candidates: readonly Candidate[]): Promise<HaproxyPath> {
    const port = await freePort();
    const file = join(folder, `haproxy-${port}.cfg`);
    writeFileSync(file, configuration(port, candidates));
    const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
    await patiently(async () => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      socket.destroy();
    });
    return new HaproxyPath(port, child);
  }

  cut(): void {
    this.#process.kill('SIGSTOP');
  }

  mend(): void {
    this.#process.kill('SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }
}
