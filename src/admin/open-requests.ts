import type { FastifyReply, FastifyRequest } from 'fastify';

/** What is being answered to each token, so that one that is revoked gets no more of a stream that is open. */
export class OpenRequests {
  readonly #byToken = new Map<string, Set<FastifyReply>>();

  add({ principal }: FastifyRequest, reply: FastifyReply): void {
    const id = principal?.id;
    if (id === undefined || id === null) return;
    const open = this.#byToken.get(id) ?? new Set();
    this.#byToken.set(id, open.add(reply));
    reply.raw.once('close', () => {
      open.delete(reply);
      if (open.size === 0) this.#byToken.delete(id);
    });
  }

  /** All but the one that asks for it. */
  cut(tokenId: string, except: FastifyReply): void {
    for (const reply of this.#byToken.get(tokenId) ?? []) if (reply !== except) reply.raw.destroy();
  }
}
