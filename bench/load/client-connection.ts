import type { TLSSocket } from 'node:tls';

/** The first byte of HEAD, whose answer has no body whatever it declares. */
const firstOfHead = 'H'.charCodeAt(0);

/** One keep-alive connection of the open loop, one request in flight at a time. */
export class ClientConnection {
  readonly #socket: TLSSocket;
  readonly #onAnswer: (connection: ClientConnection, status: number) => void;
  #received = '';
  #isHead = false;
  /** When the request in flight was to be sent. */
  dueMs = 0;

  constructor(socket: TLSSocket, onAnswer: (connection: ClientConnection, status: number) => void) {
    this.#socket = socket;
    this.#onAnswer = onAnswer;
    socket.setEncoding('latin1').on('data', (text: string) => this.#take(text));
  }

  send(request: Buffer, dueMs: number): void {
    this.dueMs = dueMs;
    this.#isHead = request[0] === firstOfHead;
    this.#socket.write(request);
  }

  /** Answers are told apart by Content-Length alone: none of the servers sends chunks. */
  #take(text: string): void {
    this.#received += text;
    const bodyAt = this.#received.indexOf('\r\n\r\n') + 4;
    if (bodyAt < 4) return;
    const declared = /\r\ncontent-length: *(\d+)/i.exec(this.#received)?.[1] ?? '0';
    if (this.#received.length < bodyAt + (this.#isHead ? 0 : Number(declared))) return;
    const status = Number(this.#received.slice('HTTP/1.1 '.length, 'HTTP/1.1 201'.length));
    this.#received = '';
    this.#onAnswer(this, status);
  }
}
