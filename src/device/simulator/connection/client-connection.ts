import type { TLSSocket } from 'node:tls';

/** The first byte of HEAD, whose answer has no body whatever it declares. */
const firstOfHead = 'H'.charCodeAt(0);

/** Takes an answer: its status, and all of its text. */
export type AnswerHandler = (connection: ClientConnection, status: number, text: string) => void;

/** One keep-alive connection of an open loop, one request in flight at a time. */
export class ClientConnection {
  readonly #socket: TLSSocket;
  readonly #onAnswer: AnswerHandler;
  #received = '';
  #isHead = false;
  /** When the request in flight was to be sent. */
  dueMs = 0;

  constructor(socket: TLSSocket, onAnswer: AnswerHandler) {
    this.#socket = socket;
    this.#onAnswer = onAnswer;
    socket.setEncoding('latin1').on('data', (text: string) => this.#take(text));
  }

  send(request: Buffer | string, dueMs: number): void {
    this.dueMs = dueMs;
    this.#isHead = (typeof request === 'string' ? request.charCodeAt(0) : request[0]) === firstOfHead;
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
    const answer = this.#received;
    this.#received = '';
    this.#onAnswer(this, status, answer);
  }
}

/** The value of a header of an answer's text; empty if it is not there. */
export function headerOf(text: string, lowerCaseName: string): string {
  const end = text.indexOf('\r\n\r\n');
  const head = text.slice(0, end < 0 ? undefined : end);
  const at = head.toLowerCase().indexOf(`\r\n${lowerCaseName}:`);
  if (at < 0) return '';
  const from = at + lowerCaseName.length + 3;
  const to = head.indexOf('\r\n', from);
  return head.slice(from, to < 0 ? undefined : to).trim();
}
