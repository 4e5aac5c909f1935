import type { FastifyReply } from 'fastify';

/** Interval of checks whether tokens of open requests are still valid. */
const checkMs = 1_000;

interface OpenRequest {
  reply: FastifyReply;
  /** Null for the bootstrap token. */
  tokenId: string | null;
  isAuthorized: () => boolean;
}

/**
 * Tracks requests in flight, so that a token that is revoked, expires or is turned off gets no more of an open stream.
 */
export class OpenRequests {
  readonly #open = new Set<OpenRequest>();
  readonly #timer = setInterval(() => this.#check(), checkMs).unref();

  add(request: OpenRequest): void {
    this.#open.add(request);
    request.reply.raw.once('close', () => this.#open.delete(request));
  }

  /** Cuts off all requests of a token except the one that revokes it. */
  cut(tokenId: string, except: FastifyReply): void {
    for (const open of this.#open) {
      if (open.tokenId === tokenId && open.reply !== except) open.reply.raw.destroy();
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    for (const { reply, isAuthorized } of this.#open) if (!isAuthorized()) reply.raw.destroy();
  }
}
