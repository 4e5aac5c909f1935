import { type Answer, retryAfterSeconds, serverErrorOf } from './answer.ts';
import { Connection, type ServerAddress } from './connection.ts';
import { Notifier } from './notifier.ts';
import { backoffSeconds, type Pace } from './pace.ts';

const clockSecondsTolerated = 30;

/** Who the device is. */
export interface DeviceIdentity {
  fleet: string;
  id: string;
}

/** Why there is no connection, and when the next attempt is made. */
export interface Outage {
  error: 'unauthorized' | 'connect_failed';
  msg: string;
  retryAtMs: number;
}

/**
 * The view of the server that all parts of a device share: where it is, who the device is, whether it answers, its
 * clock, and how long to wait after an error.
 */
export class ServerLink {
  readonly identity: DeviceIdentity;
  readonly pace: Pace;
  readonly #address: ServerAddress;
  readonly #closing = new AbortController();
  /** For pauses, of which there may be many at a time: a signal is for a few listeners. */
  readonly #closed = new Notifier();
  readonly #changed: () => void;
  /** Notified when the server says that there is mail, otherwise than by a stream. */
  readonly mailHinted = new Notifier();
  secret: string | undefined;
  isConnected = false;
  outage: Outage | undefined;
  /** The last thing that happened: a sentence. */
  reason = 'Not connected yet.';
  /** Mails that wait, as last heard. */
  mailbox: number | null = null;
  #clockMs = 0;
  isClockHeard = false;
  /** How far the server's clock was ahead when it was first heard: of what was dated before that, too. */
  firstAheadMs = 0;

  /** changed: called after whatever an operator would want to know. */
  constructor(address: ServerAddress, identity: DeviceIdentity, pace: Pace, changed: () => void) {
    this.#address = address;
    this.identity = identity;
    this.pace = pace;
    this.#changed = changed;
  }

  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
    this.#closed.notify();
  }

  connect(): Connection {
    return new Connection(this.#address);
  }

  /** The time by the server's clock once it was heard, since a device may have none that is right. */
  nowMs(): number {
    return Date.now() + this.#clockMs;
  }

  headers(more: Record<string, string> = {}): Record<string, string> {
    const { fleet, id } = this.identity;
    return { 'X-Fleet-ID': fleet, 'X-Device-ID': id, 'X-Device-Secret': this.secret ?? '', ...more };
  }

  /** Sends a request of the device. Rejects if there is no whole answer. */
  async ask(
    connection: Connection,
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: Buffer,
  ): Promise<Answer> {
    const answer = await connection.request(method, path, this.headers(headers), body);
    this.hear(answer);
    return answer;
  }

  /** Takes from an answer what it says beside its body. */
  hear({ status, headers }: Pick<Answer, 'status' | 'headers'>): void {
    const aheadMs = Date.parse(headers.date ?? '') - Date.now();
    if (!Number.isNaN(aheadMs)) {
      this.#clockMs = Math.abs(aheadMs) > clockSecondsTolerated * 1_000 ? aheadMs : 0;
      if (!this.isClockHeard) this.firstAheadMs = this.#clockMs;
      this.isClockHeard = true;
    }
    const size = headers['x-mailbox-size'];
    if (typeof size === 'string' && /^\d+$/.test(size)) this.mailbox = Number(size);
    if (status >= 200 && status < 300 && !this.isConnected) {
      [this.isConnected, this.outage] = [true, undefined];
      this.say('Connected.');
    }
  }

  say(reason: string): void {
    this.reason = reason;
    this.#changed();
  }

  #lose(error: Outage['error'], msg: string, seconds: number, reason: string): void {
    this.isConnected = false;
    this.outage = { error, msg, retryAtMs: Date.now() + seconds * 1_000 };
    this.say(reason);
  }

  /** Says why there was no good answer, and how many seconds to wait before the next attempt. */
  reportError(error: unknown, attempt: number): number {
    if (!isAnswer(error)) {
      const { message } = error as Error;
      const seconds = backoffSeconds(attempt, this.pace.retrySecondsMax);
      this.#lose('connect_failed', message, seconds, `The server cannot be reached: ${message}`);
      return seconds;
    }
    const { code, msg } = serverErrorOf(error);
    const text = msg || code;
    if (error.status === 401 || error.status === 403) {
      const { unauthorizedSecondsMax } = this.pace;
      const seconds = retryAfterSeconds(error) ?? backoffSeconds(attempt + 5, unauthorizedSecondsMax);
      this.#lose('unauthorized', text, seconds, `The server refused this device: ${text}`);
      return seconds;
    }
    this.say(`The server answered ${error.status}: ${text}`);
    return (retryAfterSeconds(error) ?? 0) + backoffSeconds(attempt, this.pace.retrySecondsMax);
  }

  /** Waits as long as an error asks for: an answer, or an exception where there was none. */
  async waitAfter(error: unknown, attempt: number): Promise<void> {
    await this.pause(this.reportError(error, attempt));
  }

  /** Waits, unless the device is closed. */
  async pause(seconds: number): Promise<void> {
    if (!this.isClosing) await this.#closed.wait(seconds);
  }
}

function isAnswer(error: unknown): error is Answer {
  return error !== null && typeof error === 'object' && 'status' in error && 'headers' in error;
}
