import type { Answer, Requester } from './client.ts';
import type { Random } from './random.ts';
import type { StormNode } from './storm-node.ts';

/** Before who was refused, or found nobody, asks again. */
const pauseMs = 50;
const patienceMs = 60_000;

const isServed = ({ status }: Answer): boolean => status !== 0 && status !== 503;

/** As clients behind a load balancer: each request goes to some node, and one that nobody answers is theirs to repeat. */
export class NodesClient implements Requester {
  readonly #nodes: readonly StormNode[];
  readonly #random: Random;

  constructor(nodes: readonly StormNode[], random: Random) {
    this.#nodes = nodes;
    this.#random = random;
  }

  device(...given: Parameters<Requester['device']>): Promise<Answer> {
    return this.#ask((client) => client.device(...given));
  }

  admin(...given: Parameters<Requester['admin']>): Promise<Answer> {
    return this.#ask((client) => client.admin(...given));
  }

  async #ask(send: (client: Requester) => Promise<Answer>): Promise<Answer> {
    const client = this.#random.pick(this.#nodes.filter((node) => node.client !== undefined))?.client;
    const nobody: Answer = { status: 0, headers: {}, text: '' };
    const answer = client === undefined ? nobody : await send(client).catch(() => nobody);
    if (!isServed(answer)) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    return answer;
  }
}

/** Asks again until it is served: all but what would be done twice. */
export class PatientClient implements Requester {
  readonly #client: Requester;
  /** How often it was not served at once. */
  refusals = 0;

  constructor(client: Requester) {
    this.#client = client;
  }

  device(...given: Parameters<Requester['device']>): Promise<Answer> {
    const [, method, path, , key] = given;
    const isRepeatable = !path.includes('/requeue/') && (method !== 'POST' || key !== undefined);
    return this.#ask(() => this.#client.device(...given), isRepeatable);
  }

  admin(...given: Parameters<Requester['admin']>): Promise<Answer> {
    const [method, path] = given;
    return this.#ask(() => this.#client.admin(...given), method !== 'POST' || path.endsWith('/test'));
  }

  async #ask(send: () => Promise<Answer>, isRepeatable: boolean): Promise<Answer> {
    const untilMs = performance.now() + patienceMs;
    for (;;) {
      const answer = await send();
      if (isServed(answer)) return answer;
      this.refusals += 1;
      if (!isRepeatable || performance.now() > untilMs) return answer;
    }
  }
}
