import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls';

export interface DeviceConnectionOptions {
  host: string;
  port: number;
  secureContext: SecureContext;
  /** TLS session offered. */
  session: Buffer | undefined;
}

/** A connection on which a device asks one thing after the other, and whose bytes are counted as TLS sends them. */
export class DeviceConnection {
  readonly #tcp: Socket;
  readonly #tls: TLSSocket;
  #received = '';
  #onData = (): void => {};
  /** Rejects when it is closed. */
  readonly #closed: Promise<never>;
  /** The latest session that came, else the one offered. */
  session: Buffer | undefined;

  private constructor(tcp: Socket, tls: TLSSocket, session: Buffer | undefined) {
    this.#tcp = tcp;
    this.#tls = tls;
    this.session = session;
    this.#closed = new Promise((_, reject) => {
      tls.once('close', () => reject(new Error(`a connection was closed after "${this.#received}"`)));
    });
    // `ask` and `follow` reject with it; without either it must not count as unhandled.
    this.#closed.catch(() => {});
    tls.on('error', () => {});
    tls.on('session', (bytes: Buffer) => {
      this.session = bytes;
    });
    tls.setEncoding('latin1').on('data', (text: string) => {
      this.#received += text;
      this.#onData();
    });
  }

  static open({ host, port, secureContext, session }: DeviceConnectionOptions): DeviceConnection {
    const tcp = connectTcp({ host, port, noDelay: true });
    const tls = connectTls({ socket: tcp, host, secureContext, ...(session && { session }) });
    return new DeviceConnection(tcp, tls, session);
  }

  get isResumed(): boolean {
    return this.#tls.isSessionReused();
  }

  /** Bytes of TLS, in both directions; those of TCP and IP come on top. */
  get bytes(): number {
    return this.#tcp.bytesRead + this.#tcp.bytesWritten;
  }

  /** Settles with the whole answer. @throws Error when the connection is closed before. */
  ask(request: string): Promise<string> {
    this.#tls.write(request, 'latin1');
    return this.#next(wholeAnswer);
  }

  /** Opens an event stream; settles with its first event, and goes on reading. */
  async follow(request: string): Promise<void> {
    this.#tls.write(request, 'latin1');
    await this.#next((text) => (text.includes('event: connected') ? text.length : undefined));
    this.#onData = () => {
      this.#received = '';
    };
  }

  close(): void {
    this.#tls.destroy();
  }

  /** Settles with what was received up to an end, once that is found. */
  #next(endOf: (text: string) => number | undefined): Promise<string> {
    const found = new Promise<string>((resolve) => {
      this.#onData = () => {
        const end = endOf(this.#received);
        if (end === undefined) return;
        resolve(this.#received.slice(0, end));
        this.#received = this.#received.slice(end);
      };
    });
    return Promise.race([found, this.#closed]);
  }
}

/** Where the answer ends that a text begins with; undefined while it is not whole. */
function wholeAnswer(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n');
  if (head === -1) return undefined;
  const length = /^content-length: *(\d+)/im.exec(text.slice(0, head))?.[1] ?? '0';
  const end = head + 4 + Number(length);
  return text.length < end ? undefined : end;
}
