import { CostCache, EventLoopBudget } from '../../core/async.ts';
import { type DeviceKey, fleetIdOf } from '../../core/identity.ts';
import type { BroadcastMail } from '../../domain/mail/broadcast.ts';
import type { Page } from '../../domain/page.ts';
import type { Shard } from '../../domain/shard.ts';

/** How many there are of each state, without those of which there is none. */
export type BroadcastMailCounts = ReadonlyMap<BroadcastMail['state'], number>;

/** Mails per read of one shard: a millisecond or two of this thread. */
const readMax = 256;
/** Mails looked at for one page of a list. */
const scannedMax = 10_000;
/** Counts are reused for so many times as long as they took, so that whoever polls takes 5 % of this thread at most. */
const reuseFactor = 20;
const rememberedMax = 100;

/** Looks up the state of the mails of broadcasts when asked: nothing is counted while devices settle their mail. */
export class BroadcastOutcomes {
  readonly #shards: readonly Shard[];
  readonly #budget = new EventLoopBudget();
  readonly #counts = new CostCache<BroadcastMailCounts>({
    freshMs: 0,
    freshPerCost: reuseFactor,
    max: rememberedMax,
  });

  constructor(shards: readonly Shard[]) {
    this.#shards = shards;
  }

  /** Takes some seconds for a million devices. */
  count(fleetId: string, broadcast: Buffer): Promise<BroadcastMailCounts> {
    return this.#counts.get(broadcast.toString('hex'), () => this.#count(fleetId, broadcast)).value;
  }

  async #count(fleetId: string, broadcast: Buffer): Promise<BroadcastMailCounts> {
    const counts = new Map<BroadcastMail['state'], number>();
    for (const { mail } of this.#shards) {
      let after: string | null = '';
      while (after !== null) {
        await this.#budget.take(fleetId);
        const page: Page<BroadcastMail> = await mail.ofBroadcast(broadcast, after, readMax);
        for (const { state } of page.items) counts.set(state, (counts.get(state) ?? 0) + 1);
        after = page.next;
      }
    }
    return counts;
  }

  /**
   * Mails by device, after one, of all states or some. Each call looks at a bounded number: a page may have fewer than
   * `limit`, or none, and still have a next one.
   */
  async list(
    broadcast: Buffer,
    states: ReadonlySet<BroadcastMail['state']>,
    after: DeviceKey,
    limit: number,
  ): Promise<Page<BroadcastMail>> {
    const items: BroadcastMail[] = [];
    let reached: string | null = after;
    for (let scanned = 0; reached !== null && scanned < scannedMax; ) {
      await this.#budget.take(fleetIdOf(after));
      const { items: mails, next }: Page<BroadcastMail> = await this.#page(broadcast, reached);
      for (const [index, mail] of mails.entries()) {
        if (!states.has(mail.state)) continue;
        items.push(mail);
        if (items.length < limit) continue;
        return { items, next: next === null && index === mails.length - 1 ? null : mail.device };
      }
      scanned += mails.length;
      reached = next;
    }
    return { items, next: reached };
  }

  /** The next mails over all shards: as far as each of them was read. */
  async #page(broadcast: Buffer, after: string): Promise<Page<BroadcastMail>> {
    const pages = await Promise.all(
      this.#shards.map(({ mail }) => mail.ofBroadcast(broadcast, after, readMax)),
    );
    const ends = pages.flatMap(({ next }) => next ?? []).sort();
    const [end = null] = ends;
    const items = pages
      .flatMap((page) => page.items)
      .filter(({ device }) => end === null || device <= end)
      .sort((one, other) => (one.device < other.device ? -1 : 1));
    return { items, next: end };
  }
}
