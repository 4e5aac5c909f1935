import type { FastifyReply } from 'fastify';

/** How often it is looked whether those who are being answered still may. */
const lookMs = 1_000;

interface OpenRequest {
  reply: FastifyReply;
  /** Null for the bootstrap token. */
  tokenId: string | null;
  mayGoOn: () => boolean;
}

/**
 * What is being answered, so that a token that is revoked, expires or is turned off gets no more of a stream
 * that is open.
 */
export class OpenRequests {
  readonly #open = new Set<OpenRequest>();
  readonly #timer = setInterval(() => this.#look(), lookMs).unref();

  add(request: OpenRequest): void {
    this.#open.add(request);
    request.reply.raw.once('close', () => this.#open.delete(request));
  }

  /** All but the one that asks for it. */
  cut(tokenId: string, except: FastifyReply): void {
    for (const open of this.#open) {
      if (open.tokenId === tokenId && open.reply !== except) open.reply.raw.destroy();
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const { reply, mayGoOn } of this.#open) if (!mayGoOn()) reply.raw.destroy();
  }
}
