import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { ApiError, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import type { AdminApp } from './context.ts';

/**
 * The exports under way: so many at once, for each is work for this thread, and none for longer than its client
 * is there. A stream alone does not see to that, for a search that finds nothing hands it nothing.
 */
export class Exports {
  readonly #share: FairShare;
  readonly #open = new Set<AbortController>();

  constructor(app: AdminApp, { exportsMax }: { exportsMax: number }) {
    this.#share = new FairShare(exportsMax);
    app.addHook('preClose', async () => {
      for (const controller of this.#open) controller.abort(unavailable('The server is stopping.'));
    });
  }

  /**
   * What to send as the answer, to `owner`: a fleet, or `*`. Each piece is asked for when the client has taken the last; the end of the signal
   * breaks the transfer off.
   * @throws ApiError unavailable.
   */
  begin(
    reply: FastifyReply,
    owner: string,
    pieces: (signal: AbortSignal) => AsyncIterable<string>,
  ): Readable {
    if (reply.raw.destroyed) throw new ApiError('bad_request');
    if (!this.#share.take(owner)) {
      throw unavailable('Too many exports are under way, of this fleet or of all (exportsMax).');
    }
    const controller = new AbortController();
    this.#open.add(controller);
    reply.raw.once('close', () => {
      this.#open.delete(controller);
      this.#share.release(owner);
      controller.abort();
    });
    return Readable.from(pieces(controller.signal));
  }
}
