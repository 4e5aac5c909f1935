import type { FastifyReply } from 'fastify';
import { sleep } from '../../core/async.ts';
import { unavailable } from '../../core/errors.ts';
import { type Party, PartyShare } from '../../core/fair-share.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Receipt } from '../../domain/mail/ended-mail.ts';
import type { Shard } from '../../domain/shard.ts';
import type { AdminApp } from '../request/admin-app.ts';

/** Pause between two looks at a receipt: a twentieth of what was waited so far, and no less than the one or more than the other. */
const pauseMsMin = 5;
const pauseMsMax = 1_000;
const pauseShare = 1 / 20;

/** A mail whose settlement is waited for. */
interface AwaitedMail {
  shard: Shard;
  device: DeviceKey;
  mailId: Uint8Array;
}

/**
 * Requests that wait until a mail is settled (D31), on whatever thread or node its device calls. They look at its receipt
 * again and again, the more seldom the longer it takes, and where an engine tells what has changed, only then: so nobody
 * is to be notified, and who does not wait pays nothing.
 */
export class SettlementWaits {
  readonly #share: PartyShare;
  readonly #open = new Set<AbortController>();
  /** Whose mail was queued while the server began to stop must not begin to wait. */
  #isClosing = false;

  constructor(app: AdminApp, max: number) {
    this.#share = new PartyShare(max);
    app.addHook('preClose', async () => {
      this.#isClosing = true;
      for (const controller of this.#open) controller.abort();
    });
  }

  /** Takes a place, before the mail is sent, until the function that it returns is called. @throws ApiError unavailable */
  take(party: Party): () => void {
    if (!this.#share.take(party)) {
      throw unavailable(
        'Too many requests of this token, its fleet or in total wait for a settlement (adminWaitsMax). Retry later.',
      );
    }
    return () => this.#share.release(party);
  }

  /** Undefined if the mail is not settled in time, the client is gone or the server stops. */
  async settled(reply: FastifyReply, mail: AwaitedMail, seconds: number): Promise<Receipt | undefined> {
    const controller = new AbortController();
    this.#open.add(controller);
    reply.raw.once('close', () => controller.abort());
    if (this.#isClosing || reply.raw.destroyed) controller.abort();
    try {
      return await receiptWithin(mail, seconds * 1_000, controller.signal);
    } finally {
      this.#open.delete(controller);
    }
  }
}

async function receiptWithin(
  { shard, device, mailId }: AwaitedMail,
  waitMs: number,
  signal: AbortSignal,
): Promise<Receipt | undefined> {
  const startMs = performance.now();
  while (!signal.aborted) {
    const changes = shard.devices.changeToken(device);
    const elapsedMs = performance.now() - startMs;
    const receipt = await shard.mail.receipt(device, mailId);
    if (receipt === undefined || receipt.settledAtMs !== undefined) return receipt;
    if (elapsedMs >= waitMs) return undefined;
    do {
      const pauseMs = Math.min(Math.max((performance.now() - startMs) * pauseShare, pauseMsMin), pauseMsMax);
      await sleep(Math.min(pauseMs, startMs + waitMs - performance.now()), signal);
    } while (changes?.isCurrent() && !signal.aborted && performance.now() - startMs < waitMs);
  }
  return undefined;
}
