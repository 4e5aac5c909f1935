import { uptime } from 'node:os';
import { type Answer, isFinal } from '../client/answer.ts';
import type { Connection } from '../client/connection.ts';
import { ServerLink } from '../client/link.ts';
import { MailWatch } from '../client/mail-watch.ts';
import { backoffSeconds, defaultPace } from '../client/pace.ts';
import { DeviceQueue } from '../client/queue/queue.ts';
import { mintIdempotencyKey } from '../client/sending/idempotency-key.ts';
import { sendHeaders } from '../client/sending/own-route.ts';
import { SyncLoop } from '../client/sending/sync-loop.ts';
import { UnreachableError } from '../client/trust.ts';
import { AgentError } from './agent-error.ts';
import type { AgentSettings } from './settings.ts';

const queueLimits = { bytesMax: 16 * 1024 * 1024, entriesMax: 100_000 };
/** A request that comes while the agent connects for the first time waits for it. */
const firstSecondsMax = 10;
/** After a loss of power all devices of a hall start at once. */
const bootSeconds = 300;
const attemptsMax = 3;

/** A datapoint or a message, as a program has sent it. */
export interface OutgoingPulse {
  kind: 'datapoint' | 'msg';
  name: string;
  body: Buffer;
  /** The program's own headers, if it set them: `Idempotency-Key`, `Recorded-At`. */
  key: string | undefined;
  recordedAt: string | undefined;
}

/** The agent's side towards the server: requests pass through, and pulses are queued where there is a queue. */
export class Uplink {
  readonly link: ServerLink;
  readonly #hasQueue: boolean;
  readonly #queue: DeviceQueue;
  readonly #loop: SyncLoop;
  readonly #watch: MailWatch;
  readonly #connection: Connection;
  readonly #work: Promise<void>[] = [];
  /** Resolves once it is known whether the server answers, or has not been known for too long. */
  readonly #outcome: Promise<unknown>;

  /** changed: called after each change of `link`. mailWaits: called when there may be mail. */
  constructor(settings: AgentSettings, changed: () => void, mailWaits: () => void) {
    let decided = (): void => {};
    const outcome = new Promise<void>((resolve) => {
      decided = resolve;
    });
    this.link = new ServerLink(settings.address, settings.identity, defaultPace, () => {
      decided();
      changed();
    });
    this.link.secret = settings.secret;
    this.#hasQueue = settings.queuePath !== undefined;
    this.#queue = new DeviceQueue(settings.queuePath, queueLimits);
    const startDelaySeconds = uptime() < bootSeconds ? firstSecondsMax : 0;
    this.#outcome = Promise.race([outcome, this.link.pause(startDelaySeconds + firstSecondsMax)]);
    const options = { heartbeatSeconds: 60, startDelaySeconds, claim: undefined, isPolling: false };
    this.#loop = new SyncLoop(this.link, this.#queue, options);
    this.#connection = this.link.connect();
    this.#watch = new MailWatch(this.link, this.#connection);
    // After the same delay as the sender.
    const watch = new Promise<void>((resolve) => {
      this.#work.push(this.#loop.run(resolve));
    }).then(() => this.#watch.run(async () => mailWaits()));
    this.#work.push(watch);
  }

  get queued(): number {
    return this.#queue.entries;
  }

  /** Rejects unless the server answers this device. */
  async requireConnection(): Promise<void> {
    await this.#outcome;
    if (this.link.isConnected) return;
    const { error, msg } = this.link.outage ?? { error: 'connect_failed', msg: this.link.reason };
    if (error === 'unauthorized') throw new AgentError(401, 'unauthorized', msg);
    throw new AgentError(403, 'not_connected', msg);
  }

  /** Sends a request of a program, which waits for its answer. */
  async ask(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: Buffer,
  ): Promise<Answer> {
    await this.requireConnection();
    try {
      return await this.#forward(method, path, headers, body);
    } catch (error) {
      throw notConnected(error);
    }
  }

  async #forward(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: Buffer,
  ): Promise<Answer> {
    try {
      const answer = await this.link.ask(this.#connection, method, path, headers, body);
      if (answer.status === 401) this.#doubt(answer);
      return answer;
    } catch (error) {
      this.#doubt(error);
      throw error;
    }
  }

  /** Notes that the server did not answer this device, and has the connection tried again until it does. */
  #doubt(error: unknown): void {
    this.link.reportError(error, 0);
    this.#loop.heartbeat();
  }

  /** Sends a datapoint or a message: the server's answer, or undefined if it was queued. */
  async send(pulse: OutgoingPulse): Promise<Answer | undefined> {
    await this.requireConnection().catch((error) => {
      if (!this.#hasQueue) throw error;
    });
    // Later pulses must not overtake queued ones.
    if (this.#hasQueue && (!this.link.isConnected || this.#queue.entries > 0)) return this.#enqueue(pulse);
    const keyMs = this.link.nowMs();
    const key = pulse.key ?? mintIdempotencyKey(keyMs);
    const headers = sendHeaders(key, null);
    if (pulse.recordedAt !== undefined) headers['Recorded-At'] = pulse.recordedAt;
    const path = `/v1/${pulse.kind}/${pulse.name}`;
    let isInDoubt = false;
    for (let attempt = 0; ; attempt += 1) {
      try {
        const answer = await this.#forward('POST', path, headers, pulse.body);
        const mayPass = answer.status !== 201 && !isFinal(answer);
        return this.#hasQueue && mayPass ? this.#enqueue(pulse, key, keyMs) : answer;
      } catch (error) {
        const wasSent = !(error instanceof UnreachableError);
        isInDoubt ||= wasSent;
        if (this.#hasQueue) return isInDoubt ? this.#enqueue(pulse, key, keyMs) : this.#enqueue(pulse);
        if (!wasSent || attempt + 1 >= attemptsMax) {
          throw isInDoubt
            ? new AgentError(
                408,
                'no_answer',
                'The server did not answer: nobody knows whether it was stored.',
              )
            : notConnected(error);
        }
        await this.link.pause(backoffSeconds(attempt, 2));
      }
    }
  }

  /** Queues a pulse. One with a key was sent before, and must be sent again as it was. */
  async #enqueue(
    pulse: OutgoingPulse,
    key: string | null = null,
    keyMs: number | null = null,
  ): Promise<undefined> {
    const body = pulse.body.toString();
    checkQueueable(pulse, body);
    const recordedMs = pulse.recordedAt === undefined ? Number.NaN : Date.parse(pulse.recordedAt);
    const nowMs = Number.isNaN(recordedMs) ? this.link.nowMs() : recordedMs;
    const atMs = key === null || !Number.isNaN(recordedMs) ? nowMs : null;
    const isClockUnheard = Number.isNaN(recordedMs) && !this.link.isClockHeard;
    const entry = { kind: pulse.kind, name: pulse.name, body, atMs, isClockUnheard, key, keyMs };
    const { dropped, stored } = this.#queue.add(entry);
    await stored;
    if (dropped > 0) this.link.say(`The queue is full: ${dropped} of the oldest entries were dropped.`);
    this.#loop.wake();
    return undefined;
  }

  async close(): Promise<void> {
    this.link.close();
    this.#watch.close();
    const cut = (): void => {
      this.#loop.close();
      this.#connection.close();
    };
    const timer = setTimeout(cut, 5_000);
    await Promise.allSettled(this.#work);
    clearTimeout(timer);
    cut();
    await this.#queue.close();
  }
}

function notConnected(error: unknown): AgentError {
  return new AgentError(403, 'not_connected', (error as Error).message);
}

/** The server would refuse it when nobody is there any more to be told. */
function checkQueueable({ kind, body: bytes }: OutgoingPulse, body: string): void {
  if (!Buffer.from(body).equals(bytes)) throw new AgentError(400, 'invalid_json', 'The body is not UTF-8.');
  let value: unknown;
  try {
    value = body === '' ? null : JSON.parse(body);
  } catch (error) {
    throw new AgentError(400, 'invalid_json', (error as Error).message);
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const isEmpty = !isObject || Object.keys(value as object).length === 0;
  const isRight = kind === 'datapoint' ? !isEmpty : isObject || value === null;
  if (!isRight)
    throw new AgentError(
      400,
      'invalid_body',
      `A ${kind} is a JSON object${kind === 'msg' ? ' or null' : ' with a member'}.`,
    );
}
