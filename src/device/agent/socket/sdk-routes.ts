import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { type Answer, retryAfterSeconds, serverErrorOf } from '../../client/answer.ts';
import { AgentError } from '../agent-error.ts';
import type { Uplink } from '../uplink.ts';
import { LocalEventStreams } from './local-event-streams.ts';
import { answerLocally } from './local-request.ts';
import { MailHand } from './mail-hand.ts';

/** The SDKs know these alone. */
const statusFor: Record<number, number> = { 409: 403, 413: 403, 415: 403, 425: 408, 429: 408, 503: 408 };
const statusesKnown = [400, 401, 403, 404, 408, 500];

/** The routes that the Fostrom SDKs ask for, over the device API. */
export class SdkRoutes {
  readonly #uplink: Uplink;
  readonly #hand = new MailHand(() => this.#makeUp());
  readonly #streams = new LocalEventStreams(
    () => this.#hand.reset(),
    () => this.#makeUp(),
  );
  #wasConnected = false;
  #outageTold: string | undefined;

  constructor(uplink: Uplink) {
    this.#uplink = uplink;
  }

  close(): void {
    this.#streams.close();
  }

  /** Tells those who listen whether there is a connection, when that has changed. */
  connectionChanged(): void {
    const { isConnected, outage } = this.#uplink.link;
    if (isConnected && !this.#wasConnected) this.#streams.sendAll('connected');
    if (!isConnected && outage !== undefined && outage.error !== this.#outageTold) {
      this.#streams.sendAll('disconnected', this.#outageText());
    }
    this.#wasConnected = isConnected;
    this.#outageTold = outage?.error;
    this.#makeUp();
  }

  /** Tells those who listen that there is mail, unless they have one in hand. */
  mailWaits(): void {
    if (this.#streams.size > 0 && this.#hand.announce()) this.#streams.sendAll('new_mail');
  }

  /** Announces what was held back. Not offline: a fetch that fails is an exception that no SDK catches. */
  #makeUp(): void {
    if (this.#hand.isMissed && this.#uplink.link.isConnected) this.mailWaits();
  }

  #outageText(): string {
    const { error, msg, retryMs } = this.#outage();
    return JSON.stringify({ error: `${error}: ${msg}`, reconnecting_in_ms: retryMs });
  }

  #outage(): { error: string; msg: string; retryMs: number } {
    const { outage, reason } = this.#uplink.link;
    const { error, msg, retryAtMs } = outage ?? { error: 'connect_failed', msg: reason, retryAtMs: 0 };
    return { error, msg, retryMs: Math.max(0, Math.round(retryAtMs - Date.now())) };
  }

  /** Answers `GET /`. */
  state(): object {
    if (this.#uplink.link.isConnected) return { connected: true };
    const { error, msg, retryMs } = this.#outage();
    return { connected: false, error, msg, reconnecting_in: retryMs };
  }

  async handle(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const { method = '', url = '' } = request;
    const [, kind, name] = /^\/pulse\/(datapoint|msg)\/([A-Za-z0-9_-]{1,255})$/.exec(url) ?? [];
    const [, verb, mail] = /^\/mailbox\/(ack|reject|requeue)\/([0-9A-Za-z-]{1,64})$/.exec(url) ?? [];
    if (method === 'GET' && url === '/events') return this.#listen(response);
    if (/^(GET|HEAD)$/.test(method) && url === '/mailbox/next') return this.#next(method, response);
    if (method === 'PUT' && verb !== undefined && mail !== undefined)
      return this.#settle(response, verb, mail);
    if (method === 'POST' && name !== undefined) {
      return this.#send(response, kind === 'msg' ? 'msg' : 'datapoint', name, body);
    }
    throw new AgentError(404, 'route_not_found', 'There is no such route.');
  }

  #listen(response: ServerResponse): void {
    this.#streams.open(response);
    if (!this.#uplink.link.isConnected) {
      this.#streams.send(response, 'disconnected', this.#outageText());
      this.#hand.miss();
      return;
    }
    this.#streams.send(response, 'connected');
    if (this.#hand.announce()) this.#streams.send(response, 'new_mail');
  }

  /** Asks about mail. Who is told of a failure asks no second time, but waits to be told of mail. */
  async #ask(method: string, path: string, mail?: string): Promise<Answer> {
    const answer = await this.#uplink.ask(method, path).catch((error) => {
      // Made up for when the server answers again.
      this.#hand.failed(mail);
      throw error;
    });
    if (answer.status < 300) return answer;
    this.#hand.failed(mail);
    // The mail is gone, expired or withdrawn, say. With any other answer it is still there.
    const isGone = mail !== undefined && [404, 409].includes(answer.status);
    if (isGone) this.#makeUp();
    else this.#hand.rest(retryAfterSeconds(answer) ?? 0);
    return checked(answer);
  }

  async #next(method: string, response: ServerResponse): Promise<void> {
    const { status, headers, body } = await this.#ask(method, '/v1/mailbox/next');
    const isEmpty = status === 204;
    const id = String(headers['x-mail-id'] ?? '');
    if (method === 'GET') this.#hand.fetched(isEmpty ? undefined : id);
    if (isEmpty) {
      answerLocally(response, 200, { 'X-Mailbox-Size': '0', 'X-Mailbox-Empty': 'true' }, 'null');
      if (method === 'GET') this.#makeUp();
      return;
    }
    const about: OutgoingHttpHeaders = {
      'X-Mailbox-Size': headers['x-mailbox-size'],
      'X-Mailbox-Empty': 'false',
      'X-Mail-ID': id,
      'X-Mail-Name': headers['x-mail-name'],
      // The server has an empty object where there is no payload (D13).
      'X-Mail-Has-Payload': String(method === 'HEAD' || body.toString() !== '{}'),
    };
    answerLocally(response, 200, about, body);
  }

  async #settle(response: ServerResponse, verb: string, mail: string): Promise<void> {
    const answer = await this.#ask('PUT', `/v1/mailbox/${verb}/${mail}`, mail);
    const isMore = this.#hand.settled(mail, verb, Number(answer.headers['x-mailbox-size'] ?? 0));
    answerLocally(
      response,
      200,
      { 'X-Mail-Available': String(isMore) },
      JSON.stringify({ ok: true, mail_available: isMore }),
    );
    // Mail that came while this one was in hand, after the server had counted.
    if (!isMore) this.#makeUp();
  }

  async #send(
    response: ServerResponse,
    kind: 'datapoint' | 'msg',
    name: string,
    body: Buffer,
  ): Promise<void> {
    const answer = await this.#uplink.send({ kind, name, body, key: undefined, recordedAt: undefined });
    if (answer !== undefined) checked(answer);
    answerLocally(response, 200, answer === undefined ? { 'X-Queued': 'true' } : {}, '{"ok":true}');
  }
}

/** @throws AgentError for an answer that is an error, in a status that the SDKs know. */
function checked(answer: Answer): Answer {
  if (answer.status < 300) return answer;
  const { code, msg } = serverErrorOf(answer);
  const status = statusFor[answer.status] ?? (statusesKnown.includes(answer.status) ? answer.status : 500);
  throw new AgentError(status, code || 'request_failed', `${msg || answer.status}${firstFault(answer)}`);
}

/** Which part of a body did not match its schema: the SDKs show the sentence alone. */
function firstFault({ body }: Answer): string {
  try {
    const [first] =
      (JSON.parse(body.toString()) as { errors?: { path: string; msg: string }[] }).errors ?? [];
    return first === undefined ? '' : ` ${first.path || '/'}: ${first.msg}.`;
  } catch {
    return '';
  }
}
