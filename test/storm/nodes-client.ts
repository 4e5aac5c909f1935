import { sleep } from '../../src/core/async.ts';
import type { AdminAnswer } from '../harness/server/server.ts';
import { type Answer, isSyncAgain, type Requester, type StormClient } from './client.ts';
import type { Random } from './random.ts';
import type { StormNode } from './storm-node.ts';

/** Pause before who was refused, or found nobody, asks again. */
const pauseMs = 50;

/**
 * Asks as clients behind a load balancer do: each request goes to some node, and one that nobody answers is theirs to
 * repeat.
 */
export class NodesClient implements Requester {
  readonly #nodes: readonly StormNode[];
  readonly #random: Random;
  readonly #patienceMs: number;
  /** How often it was not served at once. */
  refusals = 0;

  /** `patienceMs`: so long it asks again itself until it is served: all but what would be done twice. */
  constructor(nodes: readonly StormNode[], random: Random, patienceMs = 0) {
    this.#nodes = nodes;
    this.#random = random;
    this.#patienceMs = patienceMs;
  }

  device(...params: Parameters<Requester['device']>): Promise<Answer> {
    const [, method, path, body, key] = params;
    const isPostAgain = key !== undefined || isSyncAgain(path, body);
    const isRepeatable = !path.includes('/requeue/') && (method !== 'POST' || isPostAgain);
    return this.#ask(isRepeatable, { status: 0, text: '' }, (client) => client.device(...params));
  }

  admin<T>(...params: Parameters<Requester['admin']>): Promise<AdminAnswer<T>> {
    const [method, path] = params;
    const nobody = { status: 0, body: undefined as T };
    return this.#ask(method !== 'POST' || path.endsWith('/test'), nobody, (client) =>
      client.admin<T>(...params),
    );
  }

  async #ask<A extends { status: number }>(
    isRepeatable: boolean,
    nobody: A,
    send: (client: StormClient) => Promise<A>,
  ): Promise<A> {
    const untilMs = performance.now() + this.#patienceMs;
    for (;;) {
      const client = this.#random.pick(this.#nodes.filter((node) => node.client !== undefined))?.client;
      const answer = client === undefined ? nobody : await send(client).catch(() => nobody);
      if (answer.status !== 0 && answer.status !== 503) return answer;
      this.refusals += 1;
      await sleep(pauseMs);
      if (!isRepeatable || performance.now() > untilMs) return answer;
    }
  }
}
