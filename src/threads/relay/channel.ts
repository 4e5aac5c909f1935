import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { ApiError, type ErrorCode, type ErrorOptions } from '../../core/errors.ts';
import type { Completion } from '../../domain/write.ts';
import type { Call, Notice } from './messages.ts';

/** `mesh[a][b]` is a's end of the channel between workers a and b. */
export function meshOfPorts(size: number): (MessagePort | undefined)[][] {
  const mesh: (MessagePort | undefined)[][] = Array.from({ length: size }, () => Array(size).fill(undefined));
  for (let a = 0; a < size; a += 1) {
    for (let b = a + 1; b < size; b += 1) {
      const { port1, port2 } = new MessageChannel();
      (mesh[a] as MessagePort[])[b] = port1;
      (mesh[b] as MessagePort[])[a] = port2;
    }
  }
  return mesh;
}

type Frame =
  | { call: number; body: Call }
  | { answerTo: number; answer: unknown }
  | { answerTo: number; code: ErrorCode; options: ErrorOptions }
  | { notice: Notice };

/**
 * Calls and notices between two threads over one port. Everything queued in one turn of the event loop travels as one
 * message: a crossing costs tens of microseconds, its content next to nothing.
 */
export class Channel {
  readonly #port: MessagePort;
  readonly #onCall: (call: Call, completion: Completion<unknown>) => void;
  readonly #onNotice: (notice: Notice) => void;
  readonly #waiting = new Map<number, Completion<unknown>>();
  #outgoing: Frame[] = [];
  #lastCall = 0;

  constructor(
    port: MessagePort,
    onCall: (call: Call, completion: Completion<unknown>, channel: Channel) => void,
    onNotice: (notice: Notice, channel: Channel) => void,
  ) {
    this.#port = port;
    this.#onCall = (call, completion) => onCall(call, completion, this);
    this.#onNotice = (notice) => onNotice(notice, this);
    port.on('message', (frames: Frame[]) => {
      for (const frame of frames) this.#receive(frame);
    });
  }

  /** Completes as the other side does; an ApiError is passed on unchanged. */
  call(body: Call, completion: Completion<unknown>): void {
    this.#lastCall += 1;
    this.#waiting.set(this.#lastCall, completion);
    this.#send({ call: this.#lastCall, body });
  }

  /** @throws ApiError as thrown by the other side */
  ask(body: Call): Promise<unknown> {
    return new Promise((resolve, reject) => this.call(body, { resolve, reject }));
  }

  notify(notice: Notice): void {
    this.#send({ notice });
  }

  /** Sends at once, without batching the rest of this turn. */
  notifyNow(notice: Notice): void {
    this.notify(notice);
    this.#flush();
  }

  close(): void {
    this.#flush();
    this.#port.close();
  }

  #send(frame: Frame): void {
    if (this.#outgoing.length === 0) setImmediate(() => this.#flush());
    this.#outgoing.push(frame);
  }

  #flush(): void {
    if (this.#outgoing.length === 0) return;
    const frames = this.#outgoing;
    this.#outgoing = [];
    this.#port.postMessage(frames);
  }

  #receive(frame: Frame): void {
    if ('notice' in frame) this.#onNotice(frame.notice);
    else if ('call' in frame) this.#serve(frame.call, frame.body);
    else {
      const waiting = this.#waiting.get(frame.answerTo);
      this.#waiting.delete(frame.answerTo);
      if ('code' in frame) waiting?.reject(new ApiError(frame.code, frame.options));
      else waiting?.resolve(frame.answer);
    }
  }

  #serve(call: number, body: Call): void {
    this.#onCall(body, {
      resolve: (answer) => this.#send({ answerTo: call, answer }),
      reject: (error) => this.#send(refusal(call, error)),
    });
  }
}

function refusal(answerTo: number, error: unknown): Frame {
  if (error instanceof ApiError) return { answerTo, code: error.code, options: error.options };
  return { answerTo, code: 'internal_error', options: {} };
}
