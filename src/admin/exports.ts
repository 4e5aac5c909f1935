import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { ApiError, unavailable } from '../core/errors.ts';
import type { AdminApp } from './context.ts';

/** A client that takes nothing for so long is gone. */
const idleMsMax = 120_000;

/**
 * The exports under way: so many at once, for each is work for this thread, and none for longer than its client
 * is there. A stream alone does not see to that, for a search that finds nothing hands it nothing.
 */
export class Exports {
  readonly #max: number;
  readonly #open = new Set<AbortController>();

  constructor(app: AdminApp, { exportsMax }: { exportsMax: number }) {
    this.#max = exportsMax;
    app.addHook('preClose', async () => {
      for (const controller of this.#open) controller.abort(unavailable('The server is stopping.'));
    });
  }

  /**
   * What to send as the answer. Each piece is asked for when the client has taken the last; the end of the signal
   * breaks the transfer off.
   * @throws ApiError unavailable.
   */
  begin(reply: FastifyReply, pieces: (signal: AbortSignal) => AsyncIterable<string>): Readable {
    if (reply.raw.destroyed) throw new ApiError('bad_request');
    if (this.#open.size >= this.#max) throw unavailable(`${this.#max} exports are under way (exportsMax).`);
    const controller = new AbortController();
    this.#open.add(controller);
    reply.raw.once('close', () => {
      this.#open.delete(controller);
      controller.abort();
    });
    reply.raw.setTimeout(idleMsMax, () => reply.raw.destroy());
    return Readable.from(pieces(controller.signal));
  }
}
