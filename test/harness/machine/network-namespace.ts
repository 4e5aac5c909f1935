import { spawnSync } from 'node:child_process';

/**
 * Number N of the next network 10.177.N.0/30, which nobody else is likely to use: it comes from the process's own id.
 */
let made = process.pid % 200;

function ip(...args: string[]): void {
  const { status, stderr } = spawnSync('ip', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${stderr}`);
}

/** A network of its own behind one cable, which can be pulled: what is under way is lost, and nobody is told. Needs root. */
export class NetworkNamespace implements Disposable {
  readonly name: string;
  /** This machine's end, and the other. */
  readonly outside: string;
  readonly inside: string;
  readonly #cable: string;

  constructor() {
    made = (made + 1) % 250;
    this.name = `fleetpost-${process.pid}-${made}`;
    this.#cable = `fp${process.pid % 100_000}n${made}`;
    this.outside = `10.177.${made}.1`;
    this.inside = `10.177.${made}.2`;
    ip('netns', 'add', this.name);
    ip('link', 'add', this.#cable, 'type', 'veth', 'peer', 'name', 'cable', 'netns', this.name);
    ip('address', 'add', `${this.outside}/30`, 'dev', this.#cable);
    ip('link', 'set', this.#cable, 'up');
    ip('-n', this.name, 'address', 'add', `${this.inside}/30`, 'dev', 'cable');
    ip('-n', this.name, 'link', 'set', 'cable', 'up');
  }

  cut(): void {
    ip('-n', this.name, 'link', 'set', 'cable', 'down');
  }

  mend(): void {
    ip('-n', this.name, 'link', 'set', 'cable', 'up');
  }

  [Symbol.dispose](): void {
    spawnSync('ip', ['netns', 'delete', this.name]);
  }
}
