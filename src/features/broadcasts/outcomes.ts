import { yieldToEventLoop } from '../../core/async.ts';
import { parseUuid } from '../../core/uuid.ts';
import type { BroadcastEnds } from '../../domain/mail/broadcast.ts';
import type { MailEnd } from '../../domain/mail/ended-mail.ts';
import type { Shard } from '../../domain/shard.ts';
import type { BroadcastConfig } from './config.ts';
import type { BroadcastOutcomes, BroadcastStatus } from './service.ts';

/** Receipts per read of one shard: some milliseconds of this thread, which has other work. */
const scanMax = 4_096;
/** Receipts scanned for one request, which takes a second or two: beyond it the counts are partial. */
const scannedPerRequestMax = 1_000_000;
/** Clocks of nodes may differ by this much. */
const clockSkewMs = 60_000;
/** Counts are reused for so many times as long as they took, so that whoever polls takes 5 % of this thread at most. */
const reuseFactor = 20;
const rememberedMax = 1_000;

const ends: readonly MailEnd[] = [
  'acked',
  'rejected',
  'expired',
  'withdrawn',
  'over_requeued',
  'mailbox_full',
];

/** How many receipts a request may still scan. */
export interface ScanBudget {
  left: number;
}

export function newScanBudget(): ScanBudget {
  return { left: scannedPerRequestMax };
}

/**
 * Counts what became of the mail of broadcasts, by its receipts, when it is asked: nothing is counted while devices
 * settle their mail.
 */
export class OutcomeCounter {
  readonly #shards: readonly Shard[];
  readonly #config: BroadcastConfig;
  readonly #remembered = new Map<string, { counts: Counts; queued: number; untilMs: number }>();

  constructor(shards: readonly Shard[], config: BroadcastConfig) {
    this.#shards = shards;
    this.#config = config;
  }

  async outcomesOf(status: BroadcastStatus, budget: ScanBudget): Promise<BroadcastOutcomes> {
    const { counts, isPartial } = await this.#counted(status, budget);
    const ended = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const oldestMs = Date.now() - this.#config.receiptRetentionSeconds * 1_000;
    return {
      ...counts,
      waiting: Math.max(0, status.queued - ended),
      isPartial: isPartial || status.createdAtMs < oldestMs,
    };
  }

  async #counted(status: BroadcastStatus, budget: ScanBudget): Promise<Counts> {
    const { id, queued, createdAtMs, endedAtMs } = status;
    const broadcast = parseUuid(id);
    if (queued === 0 || broadcast === undefined) return { counts: zero(), isPartial: false };
    const startMs = Date.now();
    const known = this.#remembered.get(id);
    if (known !== undefined && known.queued === queued && startMs < known.untilMs) return known.counts;
    const query = {
      broadcast,
      fromMs: Math.max(0, createdAtMs - clockSkewMs),
      untilMs: (endedAtMs ?? startMs) + clockSkewMs,
    };
    const counts: Counts = { counts: zero(), isPartial: false };
    for (const shard of this.#shards) {
      let after: string | undefined = '';
      while (after !== undefined && budget.left > 0) {
        const limit = Math.min(scanMax, budget.left);
        const page: BroadcastEnds = await shard.mail.broadcastEnds({ ...query, after, scanMax: limit });
        for (const end of ends) counts.counts[end] += page.ends[end] ?? 0;
        budget.left -= Math.max(1, page.scanned);
        after = page.reached;
        await yieldToEventLoop();
      }
      if (after !== undefined) counts.isPartial = true;
    }
    const tookMs = Date.now() - startMs;
    this.#remembered.delete(id);
    this.#remembered.set(id, { counts, queued, untilMs: Date.now() + reuseFactor * tookMs });
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > rememberedMax && oldest !== undefined) this.#remembered.delete(oldest);
    return counts;
  }
}

interface Counts {
  counts: Record<MailEnd, number>;
  isPartial: boolean;
}

function zero(): Record<MailEnd, number> {
  return { acked: 0, rejected: 0, expired: 0, withdrawn: 0, over_requeued: 0, mailbox_full: 0 };
}
