import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { NetworkNamespace } from '../machine/network-namespace.ts';
import { withTypeScript } from '../machine/typescript.ts';

/** A node's own way to the database, over TCP, which can be cut without anybody being told. */
export interface DatabasePath extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  cut(): void;
  mend(): void;
}

/**
 * Leads to the server that it was pointed to last. Where it has a network of its own, the cable there is pulled; else
 * the process of the relay is stopped, which takes in what is sent and passes nothing on.
 */
export class RelayPath implements DatabasePath {
  readonly host: string;
  readonly port: number;
  readonly #process: ChildProcess;
  readonly #namespace: NetworkNamespace | undefined;

  private constructor(port: number, child: ChildProcess, namespace: NetworkNamespace | undefined) {
    this.host = namespace?.inside ?? '127.0.0.1';
    this.port = port;
    this.#process = child;
    this.#namespace = namespace;
  }

  static async start(namespace?: NetworkNamespace): Promise<RelayPath> {
    const file = new URL('database-path-process.ts', import.meta.url).pathname;
    const command = [process.execPath, ...withTypeScript, file, namespace?.inside ?? '127.0.0.1'];
    if (namespace !== undefined) command.unshift('ip', 'netns', 'exec', namespace.name);
    const [program = '', ...args] = command;
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const [printed] = (await once(child.stdout, 'data')) as [Buffer];
    return new RelayPath(Number(printed.toString()), child, namespace);
  }

  /** Leads to that port of this machine, or that socket's path. Closes what was open to another. */
  lead(to: number | string): void {
    const host = this.#namespace?.outside ?? '127.0.0.1';
    const target = typeof to === 'string' ? { path: to } : { host, port: to };
    this.#process.stdin?.write(`${JSON.stringify(target)}\n`);
  }

  /** Leaves open connections open but carrying nothing any more, as where a machine on the way was exchanged. */
  strand(): void {
    this.#process.stdin?.write('null\n');
  }

  cut(): void {
    if (this.#namespace === undefined) this.#process.kill('SIGSTOP');
    else this.#namespace.cut();
  }

  mend(): void {
    if (this.#namespace === undefined) this.#process.kill('SIGCONT');
    else this.#namespace.mend();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
    this.#namespace?.[Symbol.dispose]();
  }
}
