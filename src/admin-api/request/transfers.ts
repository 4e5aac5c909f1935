import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { ApiError, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { AdminApp } from './admin-app.ts';

/**
 * Bounds concurrent exports or imports, because each is work for this thread, and aborts one when its client
 * disconnects. A stream alone does not notice that while a search finds nothing to write.
 */
export class Transfers {
  readonly #kind: 'exports' | 'imports';
  readonly #share: FairShare;
  readonly #open = new Set<AbortController>();

  constructor(app: AdminApp, kind: 'exports' | 'imports', max: number) {
    this.#kind = kind;
    this.#share = new FairShare(max);
    app.addHook('preClose', async () => {
      for (const controller of this.#open) controller.abort(unavailable('The server is stopping.'));
    });
  }

  /**
   * Returns the answer to send to `owner`: a fleet, or `*`. Pulls the next chunk when the client has read the last;
   * aborting the signal aborts the transfer.
   * @throws ApiError unavailable.
   */
  begin(
    reply: FastifyReply,
    owner: string,
    chunks: (signal: AbortSignal) => AsyncIterable<string>,
  ): Readable {
    if (reply.raw.destroyed) throw new ApiError('bad_request');
    if (!this.#share.take(owner)) {
      throw unavailable(
        `Too many ${this.#kind} of this fleet or in total are running (${this.#kind}Max). Retry later.`,
      );
    }
    const controller = new AbortController();
    this.#open.add(controller);
    reply.raw.once('close', () => {
      this.#open.delete(controller);
      this.#share.release(owner);
      controller.abort();
    });
    return Readable.from(chunks(controller.signal));
  }
}
