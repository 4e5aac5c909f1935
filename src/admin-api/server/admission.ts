import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FastifyRequest, RouteOptions } from 'fastify';
import { EventLoopBudget } from '../../core/async.ts';
import { unavailable } from '../../core/errors.ts';
import { type Party, PartyShare } from '../../core/fair-share.ts';
import { newRequestId } from '../../core/telemetry/request-id.ts';
import { type Bearers, partyOf } from '../auth/authorization.ts';
import type { AdminApiConfig } from '../config.ts';
import type { AdminApp } from '../request/admin-app.ts';
import { FairQueue } from './fair-queue.ts';

/**
 * Paths that are answered at once and without a token. They only take turns, those of an address together, so that an
 * operator's metrics are never refused, and no stranger's hold up more than a turn.
 */
const openPath = /^\/(?:healthz|readyz|metrics|openapi\.json|console)(?=[/?]|$)/;
/** Time that a refusal is held back, so that who asks again at each answer does not keep this thread busy. */
const refusalDelayMs = 1_000;

interface Admitted {
  party: Party;
  state: 'waiting' | 'under way' | 'in its handler' | 'ended';
}

export type AdmissionLimits = Pick<
  AdminApiConfig,
  'adminRequestsMax' | 'adminQueueMax' | 'adminQueueSeconds'
>;

/**
 * Decides which request of the admin API begins next. A few of each token and some dozens in all are under way, others
 * wait in a short queue, by shares of fleets and their tokens. Each begins in a turn of the event loop that has time
 * for it: what hundreds of connections have ready would otherwise be one turn.
 */
export class Admission {
  readonly #context: Bearers;
  readonly #limits: AdmissionLimits;
  readonly #turns = new EventLoopBudget();
  readonly #underWay: PartyShare;
  readonly #queued: PartyShare;
  readonly #queue = new FairQueue<() => void>();
  readonly #admitted = new WeakMap<IncomingMessage, Admitted>();
  #refused = 0;

  constructor(context: Bearers, limits: AdmissionLimits) {
    this.#context = context;
    this.#limits = limits;
    this.#underWay = new PartyShare(limits.adminRequestsMax);
    this.#queued = new PartyShare(limits.adminQueueMax);
  }

  /** Requests under way, those that wait, and how many were refused so far. */
  get counts(): { underWay: number; waiting: number; refused: number } {
    return { underWay: this.#underWay.used, waiting: this.#queued.used, refused: this.#refused };
  }

  /** Returns a listener that passes each request on when it may begin. */
  before(handler: RequestListener): RequestListener {
    return (request, response) => {
      if (!openPath.test(request.url ?? '')) return this.#queueUp(request, response, handler);
      void this.#begin(`open to ${request.socket.remoteAddress}`, request, response, handler);
    };
  }

  /** Adds the hooks that end what `before` has admitted, and `request.turn`. */
  addTo(app: AdminApp): void {
    const admitted = this.#admitted;
    const turns = this.#turns;
    // Bound to its request, to be passed on.
    app.decorateRequest('turn', {
      getter(this: FastifyRequest) {
        return () => turns.take(admitted.get(this.raw)?.party.group);
      },
    });
    app.addHook('onRoute', (route) => this.#watch(route));
    // Bodies may arrive at the same time, for all that is under way.
    app.addHook('preValidation', async (request) => {
      if (request.body !== undefined) await request.turn();
    });
    // A stream has a limit of its own.
    app.addHook('onSend', async ({ raw }) => this.#end(raw));
  }

  /** Lets a handler end what it has begun, whose client may be gone long before. */
  #watch(route: RouteOptions): void {
    const { handler, config } = route;
    route.handler = async (request, reply) => {
      const admitted = this.#admitted.get(request.raw);
      if (config?.hasOwnLimit) this.#end(request.raw);
      else if (admitted?.state === 'under way') admitted.state = 'in its handler';
      try {
        // Fastify's own type of `this`, which no handler uses.
        return await (handler as (...input: unknown[]) => unknown)(request, reply);
      } finally {
        if (reply.raw.destroyed) this.#end(request.raw);
      }
    };
  }

  #queueUp(request: IncomingMessage, response: ServerResponse, handler: RequestListener): void {
    const party = partyOf(request, this.#context);
    if (!this.#queued.take(party)) {
      this.#refuseLater(request, response);
      return;
    }
    const admitted: Admitted = { party, state: 'waiting' };
    this.#admitted.set(request, admitted);
    const leave = (): void => {
      clearTimeout(timer);
      this.#queued.release(party);
      this.#queue.remove(party, begin);
    };
    const begin = (): void => {
      leave();
      admitted.state = 'under way';
      void this.#begin(party.group, request, response, handler);
    };
    const timer = setTimeout(() => {
      leave();
      admitted.state = 'ended';
      void this.#refuse(request, response, 'adminQueueSeconds');
    }, this.#limits.adminQueueSeconds * 1_000);
    response.once('close', () => {
      if (admitted.state === 'waiting') leave();
      // A handler goes on until it is done.
      if (admitted.state !== 'in its handler') this.#end(request);
    });
    this.#queue.add(party, begin);
    this.#fill();
  }

  #fill(): void {
    for (;;) {
      const begin = this.#queue.next((party) => this.#underWay.take(party));
      if (begin === undefined) return;
      begin();
    }
  }

  async #begin(
    group: string,
    request: IncomingMessage,
    response: ServerResponse,
    handler: RequestListener,
  ): Promise<void> {
    await this.#turns.take(group);
    if (!response.destroyed) handler(request, response);
  }

  #end(request: IncomingMessage): void {
    const admitted = this.#admitted.get(request);
    if (admitted === undefined) return;
    const { party, state } = admitted;
    admitted.state = 'ended';
    if (state === 'waiting' || state === 'ended') return;
    this.#underWay.release(party);
    this.#fill();
  }

  #refuseLater(request: IncomingMessage, response: ServerResponse): void {
    const timer = setTimeout(() => void this.#refuse(request, response, 'adminQueueMax'), refusalDelayMs);
    response.once('close', () => clearTimeout(timer));
  }

  async #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    limit: keyof AdmissionLimits,
  ): Promise<void> {
    await this.#turns.take();
    if (response.destroyed) return;
    this.#refused += 1;
    const error = unavailable(
      `Too many requests of this token, its fleet or in total (adminRequestsMax, ${limit}). Retry later.`,
    );
    const head = {
      'Content-Type': 'application/json',
      'Retry-After': '1',
      'X-Request-Id': newRequestId(request.headers['x-request-id']),
      // Its body is not read, so the listener closes the connection after the answer.
      ...(!request.complete && { Connection: 'close' }),
    };
    response.writeHead(error.status, head).end(JSON.stringify(error));
  }
}
