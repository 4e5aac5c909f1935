import type { AddressInfo } from 'node:net';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { isResumed } from './server-hello.ts';

/**
 * Behaviour of the network: `pass` all; `refuse` connections and cut those that are open; `lose` what the server
 * answers, and cut a moment later; `cut` at random; `trickle` answers byte by byte.
 */
export type Weather = 'pass' | 'refuse' | 'lose' | 'cut' | 'trickle';

/** A network between a client and its server that does its worst, on an address that stays. */
export class HostileRelay implements AsyncDisposable {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #weather: Weather = 'pass';
  #targetPort: number;
  /** When each connection came, in milliseconds. */
  readonly arrivalsMs: number[] = [];
  /** Of each connection that the server has answered on: whether it has resumed a TLS session. */
  readonly resumed: boolean[] = [];

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((client) => this.#relay(client));
  }

  static async open(targetPort: number): Promise<HostileRelay> {
    const relay = new HostileRelay(targetPort);
    await new Promise<void>((resolve) => relay.#server.listen(0, '127.0.0.1', resolve));
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Sets the port that connections go to from now on: a server that came back has another one. */
  set targetPort(port: number) {
    this.#targetPort = port;
    this.cut();
  }

  /** Ends all connections that are open: their clients come again. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  set weather(weather: Weather) {
    this.#weather = weather;
    if (weather !== 'pass') this.cut();
  }

  #relay(client: Socket): void {
    this.arrivalsMs.push(performance.now());
    if (this.#weather === 'refuse') {
      client.resetAndDestroy();
      return;
    }
    const server = dial(this.#targetPort, '127.0.0.1');
    const ends = [client, server] as const;
    for (const [index, socket] of ends.entries()) {
      this.#open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#open.delete(socket);
        ends[1 - index]?.destroy();
      });
    }
    let hello = Buffer.alloc(0);
    client.on('data', (bytes) => {
      if (hello.length === 0) hello = bytes;
      if (this.#weather === 'cut' && Math.random() < 0.05) client.destroy();
      else server.write(bytes);
    });
    // The handshake comes through, so that it is a request whose answer is lost.
    let answers = 0;
    server.on('data', (bytes) => {
      answers += 1;
      if (answers === 1) this.resumed.push(isResumed(hello, bytes));
      if (this.#weather === 'lose' && answers > 3 && Math.random() < 0.5) {
        client.pause();
        setTimeout(() => client.destroy(), 30);
      } else if (this.#weather === 'cut' && Math.random() < 0.05) client.destroy();
      else if (this.#weather === 'trickle') void trickle(bytes, client);
      else client.write(bytes);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Sends in pieces of seven bytes. Not one by one: a handshake would take minutes. */
async function trickle(bytes: Buffer, to: Socket): Promise<void> {
  to.cork();
  to.uncork();
  for (let at = 0; at < bytes.length && !to.destroyed; at += 7) {
    to.write(bytes.subarray(at, at + 7));
    if (at % 70 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}
